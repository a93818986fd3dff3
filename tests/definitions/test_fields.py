"""A definition's fields are declared once, in Content: code, the table and the command line match it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.cli.definitions.preview import preview_command
from rowcall.definitions import Content, as_sent, checked
from rowcall.definitions.content import OPTIONS, SENT
from rowcall.job_types import Definition
from rowcall.job_types.builtin import NOOP
from tests.definitions.making import CATALOGUE


def test_code_declares_the_same_fields_as_a_file_with_the_same_defaults() -> None:
    declared = Definition("nightly", NOOP)
    assert {field.name for field in dataclasses.fields(Definition)} == {"name", *SENT}
    assert checked("nightly", declared.content, CATALOGUE) == checked("nightly", {"job_type": "noop"}, CATALOGUE)


def test_every_field_is_a_column_with_the_same_default(connection: PgConnection) -> None:
    fetch_all(connection, "INSERT INTO rowcall.job_definitions (name, job_type) VALUES ('bare', 'noop')")
    row = fetch_one(connection, "SELECT * FROM rowcall.job_definitions")
    assert row is not None
    assert Content.of(row) == Content("noop")


def test_the_preview_has_an_option_for_each_field_that_names_one() -> None:
    options = {parameter.name: parameter for parameter in preview_command.params}
    assert set(OPTIONS) <= set(options)
    assert list(getattr(options["catch_up"].type, "choices", ())) == ["skip", "latest", "all"]


def test_what_a_field_holds_is_sent_as_programs_read_it() -> None:
    content = Content("noop", max_lateness=timedelta(hours=6))
    assert as_sent(content) == {**as_sent(Content("noop")), "max_lateness": 21600.0}
