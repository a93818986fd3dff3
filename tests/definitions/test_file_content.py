"""The content of a parsed TOML or YAML file: one table of definitions, with values that JSON has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection
from rowcall.base.errors import DefinitionFileInvalid, DefinitionInvalid
from rowcall.definitions import apply_file, checked, list_definitions
from rowcall.definitions.file import IN_TOML, IN_YAML, read_file
from tests.definitions.files import CATALOGUE, TOML, refusal, written

# What can be parsed, but is not a table of definitions


@pytest.mark.parametrize(
    ("name", "text", "beside"),
    [
        ("a.toml", "", ""),
        ("a.toml", "# nothing\n", ""),
        ("a.toml", '[nightly]\njob_type = "noop"\n', "; it also contains nightly"),
        ("a.toml", "[definition.nightly]\n", "; it also contains definition"),
        ("a.toml", "definitions = []\n", ""),
        ("a.toml", "version = 1\n[definitions]\n", "; it also contains version"),
        ("a.toml", "[[definitions]]\n", ""),
        ("a.yaml", "", ""),
        ("a.yaml", "---\n", ""),
        ("a.yaml", "- definitions\n", ""),
        ("a.yaml", "nightly\n", ""),
        ("a.yaml", "definitions:\n", ""),
        ("a.yaml", "definitions:\n- nightly\n", ""),
        ("a.yaml", "1: {}\ndefinitions: {}\n", "; it also contains 1"),
        ("a.yaml", "? [a]\n: b\n", "; it also contains ('a',)"),
    ],
)
def test_a_file_holds_one_table_of_definitions(folder: Path, name: str, text: str, beside: str) -> None:
    example = IN_TOML if name == "a.toml" else IN_YAML
    assert refusal(written(folder, name, text)) == (
        f": must contain one table `definitions` and nothing else{beside}. For example:\n{example}"
    )


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.toml", "[definitions]\nnightly = 1\n", "nightly"),
        ("a.toml", "[[definitions.nightly]]\n", "nightly"),
        ("a.yaml", "definitions:\n  nightly:\n", "nightly"),
        ("a.yaml", "definitions:\n  2026-01-01: {job_type: noop}\n", "2026-01-01"),
        ("a.yaml", "definitions:\n  7: {job_type: noop}\n", "7"),
        ("a.yaml", "definitions:\n  ~: {job_type: noop}\n", "None"),
    ],
)
def test_each_definition_is_a_name_with_a_table(folder: Path, name: str, text: str, place: str) -> None:
    assert refusal(written(folder, name, text)).startswith(f": definitions.{place} is not a name with a table")


# What TOML and YAML have, but not JSON


def payload_of(file: Path) -> Any:
    return checked("a", read_file(file)["a"], CATALOGUE).payload


def test_dates_and_times_in_a_payload_become_iso_8601(folder: Path) -> None:
    in_toml = "day = 2026-03-29, at = 2026-03-29T02:30:00+01:00, wall = 2026-03-29 02:30:00"
    in_yaml = "{day: 2026-03-29, at: 2026-03-29T02:30:00+01:00, wall: 2026-03-29 02:30:00}"
    kept = {"day": "2026-03-29", "at": "2026-03-29T02:30:00+01:00", "wall": "2026-03-29T02:30:00"}
    toml = written(folder, "a.toml", f'[definitions.a]\njob_type = "noop"\npayload = {{ {in_toml}, t = 02:30:00 }}')
    assert payload_of(toml) == {**kept, "t": "02:30:00"}
    yaml = written(folder, "a.yaml", f"definitions:\n  a:\n    job_type: noop\n    payload: {in_yaml}\n")
    assert payload_of(yaml) == kept


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("a.toml", "payload = { a = nan }", "definition 'a', payload: payload.a is nan, which JSON cannot represent"),
        ("a.toml", "payload = { a = [-inf] }", "definition 'a', payload: payload.a[0] is -inf"),
        ("a.toml", "schedule = 2026-01-01", "schedule: is datetime.date(2026, 1, 1) and must be text"),
        ("a.toml", "priority = inf", "priority: is inf and must be a whole number"),
        ("a.toml", f"payload = {{ a = {'[' * 50}{']' * 50} }}", "payload: nests deeper than 32 levels"),
        ("a.toml", 'payload = { a = "\\u0000" }', "payload: cannot be stored as JSON: it contains a null character"),
        ("a.yaml", "payload: {a: .nan}", "payload: payload.a is nan"),
        ("a.yaml", "payload: {a: {1: b}}", "payload: payload.a has the key 1, which is not text"),
        ("a.yaml", "payload: {yes: 1, true: 2}", "payload: payload has the key True, which is not text"),
        ("a.yaml", "payload: ~", "payload: is null and must have a value or be left out"),
        ("a.yaml", "max_lateness: [6, h]", "max_lateness: \"[6, 'h']\" is not a duration"),
        ("a.yaml", "1: 2", "definition 'a', 1: is not a field of a definition"),
    ],
    ids=str,
)
def test_what_a_definition_cannot_hold_is_refused_like_any_other_wrong_field(
    folder: Path, name: str, fields: str, sentence: str
) -> None:
    in_toml, in_yaml = (
        f'[definitions.a]\njob_type = "noop"\n{fields}',
        f"definitions:\n  a: {{job_type: noop, {fields}}}",
    )
    file = written(folder, name, in_toml if name == "a.toml" else in_yaml)
    with pytest.raises(DefinitionInvalid) as refused:
        checked("a", read_file(file)["a"], CATALOGUE)
    assert sentence in str(refused.value)


def test_of_a_file_that_is_wrong_somewhere_nothing_is_applied_and_everything_told(
    connection: PgConnection, folder: Path
) -> None:
    wrong = f'{TOML}\n[definitions.Third]\njob_type = "nop"\n[definitions.fourth]\njob_type = "noop"\nqueue = 1\n'
    file = written(folder, "a.toml", wrong)
    with pytest.raises(DefinitionFileInvalid) as refused:
        apply_file(connection, file, CATALOGUE, Operator("test"))
    first, *sentences = str(refused.value).splitlines()
    assert first == f"{file}: nothing was applied:"
    assert [sentence.partition(": ")[0] for sentence in sentences] == [
        "definition 'Third', job_type",
        "definition 'Third', name",
        "definition 'fourth', queue",
    ]
    assert list_definitions(connection) == []
