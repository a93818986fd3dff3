"""`rowcall queues`: list, pause, resume and limit queues."""

from __future__ import annotations

import json

from rowcall.base import database
from rowcall.status import Status
from tests.support.processes import rowcall
from tests.support.rows import run_in
from tests.support.terminal import on_terminal


def said(environment: dict[str, str], *arguments: str) -> str:
    told = rowcall(environment, "queues", *arguments)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_a_paused_queue_keeps_its_runs_until_it_is_resumed(environment: dict[str, str]) -> None:
    rowcall(environment, "enqueue", "noop", "{}", "--queue", "mail")
    assert said(environment, "pause", "mail") == "queue mail is paused, without a limit\n"
    assert "claimed 0" in rowcall(environment, "worker", "once").stdout
    [listed] = json.loads(said(environment, "list", "--json"))
    assert (listed["name"], listed["due"], listed["paused_at"] is not None) == ("mail", 1, True)
    assert said(environment, "resume", "mail") == "queue mail is active, without a limit\n"
    assert "claimed 1" in rowcall(environment, "worker", "once").stdout


def test_a_queue_is_limited_and_set_free_again(environment: dict[str, str]) -> None:
    assert said(environment, "limit", "default", "3") == "queue default is active, limited to 3 runs at a time\n"
    assert said(environment, "limit", "default", "--none") == "queue default is active, without a limit\n"


def test_a_queue_that_no_type_uses_is_pointed_out(environment: dict[str, str]) -> None:
    paused = rowcall(environment, "queues", "pause", "mial")
    assert "no job type uses the queue mial; queues in use: default" in paused.stderr
    assert "if the name is misspelt, `rowcall queues remove mial` removes these settings" in paused.stderr


def test_a_misspelt_rule_is_removed(environment: dict[str, str]) -> None:
    said(environment, "pause", "mial")
    assert said(environment, "remove", "mial") == "queue mial no longer has settings\n"
    assert "mial" not in said(environment, "list")
    again = rowcall(environment, "queues", "remove", "mial")
    assert (again.returncode, again.stdout) == (1, "")
    assert "queue 'mial' has no settings to remove" in again.stderr


def test_the_rule_of_a_queue_whose_runs_count_against_it_is_not_removed(
    environment: dict[str, str], fresh_url: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    said(here, "limit", "default", "3")
    with database.transaction(fresh_url) as connection:
        run = run_in(connection, Status.RUNNING)
        database.fetch_all(connection, "UPDATE rowcall.queues SET holders = ARRAY[%(id)s]::bigint[]", run)
    refused = rowcall(here, "queues", "remove", "default")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "that count against its limit are running" in refused.stderr
    assert "default" in said(here, "list")


def test_what_cannot_be_done_says_why(environment: dict[str, str]) -> None:
    for arguments, code, complaint in (
        (["limit", "mail"], 2, "specify MAX_RUNNING or --none"),
        (["limit", "mail", "3", "--none"], 2, "specify MAX_RUNNING or --none"),
        (["limit", "mail", "-3"], 2, "'-3' is not valid: write an integer from 0 to 2147483647, or --none"),
        (["limit", "mail", "abc"], 2, "'abc' is not valid: write an integer from 0 to 2147483647, or --none"),
        (["pause", "E-Mail"], 1, "'E-Mail' is not a valid queue name"),
    ):
        refused = rowcall(environment, "queues", *arguments)
        assert (refused.returncode, refused.stdout) == (code, "")
        assert complaint in refused.stderr


def test_an_empty_list_says_so(environment: dict[str, str], fresh_url: str) -> None:
    assert "no queue has live runs" in said({**environment, "DATABASE_URL": fresh_url}, "list")


def test_the_hint_at_a_misspelt_queue_is_wrapped(environment: dict[str, str]) -> None:
    lines = on_terminal(environment, "queues", "pause", "mial", columns=60, errors_too=True)
    assert max(map(len, lines)) <= 60
    assert "`rowcall queues remove mial`" in " ".join(lines)
