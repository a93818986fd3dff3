"""`rowcall audit`: who changed what."""

from __future__ import annotations

import json

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.definitions.making import kept
from tests.support.processes import rowcall
from tests.support.terminal import on_terminal


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The environment of a `rowcall` process on a database with a few changes."""
    with database.transaction(fresh_url) as connection:
        queue.limit_queue(connection, "mail", 3, Operator("api:billing (0123abcd)", "request-1"))
        queue.pause_queue(connection, "mail", Operator("cli:ada"))
    return {**environment, "DATABASE_URL": fresh_url}


def test_the_list_fits_100_columns_and_says_what_changed_the_newest_first(environment: dict[str, str]) -> None:
    lines = on_terminal(environment, "audit")
    assert max(map(len, lines)) <= 100
    assert lines[0].split() == ["at", "who", "action", "subject", "subject_id", "changes"]
    paused, limited = lines[1:]
    assert "cli:ada" in paused
    assert "queue    mail" in paused  # a queue has a name, and no id
    assert " pause " in paused
    assert "max_running - > 3" in limited


def test_a_definition_is_named_and_its_id_finds_its_changes(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        kept(connection, "weekly")
        kept(connection, "monthly")
    listed = "\n".join(on_terminal(environment, "audit", "--subject", "definition"))
    assert "definition  weekly " in listed
    assert "definition  monthly " in listed
    shown = json.loads(rowcall(environment, "definitions", "show", "weekly", "--json").stdout)
    found = rowcall(environment, "audit", "--subject", "definition", "--subject-id", str(shown["id"]), "--json")
    assert [change["subject_name"] for change in json.loads(found.stdout)] == ["weekly"]


def test_the_options_select_and_json_has_all_fields(environment: dict[str, str]) -> None:
    options = ("--who", "api:billing", "--action", "limit", "--subject", "queue", "--after", "1h", "--json")
    [change] = json.loads(rowcall(environment, "audit", *options).stdout)
    assert (change["before"]["max_running"], change["after"]["max_running"]) == (None, 3)
    assert change["request_id"] == "request-1"
    assert json.loads(rowcall(environment, "audit", "--before", "1h", "--json").stdout) == []
    assert "request-1" in rowcall(environment, "audit", "--limit", "2").stdout


def test_an_empty_list_says_for_what_it_was_asked(environment: dict[str, str]) -> None:
    told = rowcall(environment, "audit", "--action", "retry", "--subject", "run", "--subject-id", "7").stdout
    assert told == "no changes match --action retry --subject run --subject-id 7\n"
    refused = rowcall(environment, "audit", "--subject-id", "7")
    assert (refused.returncode, refused.stderr.startswith("rowcall: subject_id: needs a subject")) == (1, True)


def test_an_unknown_subject_is_a_usage_error(environment: dict[str, str]) -> None:
    refused = rowcall(environment, "audit", "--subject", "typo")
    assert (refused.returncode, "run" in refused.stderr) == (2, True)
