"""Commands that change many runs, and `rowcall operations`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.status import Status
from tests.support.gate import Gate, gate
from tests.support.live_terminal import live_terminal
from tests.support.operations import statuses
from tests.support.processes import rowcall
from tests.support.rows import run_in

MANY = """
INSERT INTO rowcall.job_runs (job_type, status, failed_at, finished_at, queue)
SELECT 'noop', 'dead', now(), now(), 'mail' FROM generate_series(1, %(runs)s)
"""


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """Return an environment with a database for the test."""
    return {**environment, "DATABASE_URL": fresh_url}


@pytest.fixture
def barred(fresh_url: str) -> Iterator[Gate]:
    """Yield the gate in the database."""
    with gate(fresh_url) as barred:
        yield barred


def made(url: str, *found: Status, **columns: str) -> list[int]:
    """Insert a run in each of these statuses."""
    with database.transaction(url) as connection:
        return [run_in(connection, status, **columns)["id"] for status in found]


def found(url: str, run_ids: list[int]) -> list[str]:
    with database.transaction(url) as connection:
        return statuses(connection, run_ids)


def shown(environment: dict[str, str], *arguments: str) -> Any:
    """Return what `rowcall operations` prints as JSON."""
    told = rowcall(environment, "operations", *arguments, "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_a_command_changes_all_that_match_without_a_worker(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, MANY, {"runs": 1002})
    asked = ("runs", "retry", "--status", "dead", "--type", "noop")
    dry = rowcall(environment, *asked, "--dry-run").stdout
    assert re.fullmatch(
        r"1,002 match \(1,002 dead\), such as runs [0-9]+(, [0-9]+){4}; dry run: nothing was changed\n", dry
    )
    assert json.loads(rowcall(environment, *asked, "--dry-run", "--json").stdout)["matched"] == 1002
    one = rowcall(environment, *asked, "--limit", "1")
    assert one.stdout == "operation 1 is finished: 1 matched, 1 changed\n"
    assert one.stderr == "1,001 more match: repeat the command to change them too\n"
    rest = json.loads(rowcall(environment, *asked, "--json", "--reason", "mail is back").stdout)
    assert (rest["matched"], rest["changed"], rest["refused"], rest["status"]) == (1001, 1001, 0, "finished")
    assert [row["reason"] for row in shown(environment, "list")] == ["mail is back", None]


def test_a_limit_that_leaves_one_run_says_so(environment: dict[str, str], fresh_url: str) -> None:
    made(fresh_url, Status.DEAD, Status.DEAD)
    told = rowcall(environment, "runs", "retry", "--all", "--limit", "1").stderr
    assert told == "1 more matches: repeat the command to change it too\n"


EFFECTS = """
INSERT INTO rowcall.{table} (idempotency_key, run_id, lease_no, content_hash, state)
SELECT '{state}:' || run_id || number, run_id, 1, '', '{state}'
FROM unnest(%(run_ids)s) AS run_id, generate_series(1, 2) AS number
"""


def test_a_dry_run_of_a_retry_counts_the_runs_that_would_die_again(environment: dict[str, str], fresh_url: str) -> None:
    older, charged, begun, newest = made(fresh_url, Status.DEAD, Status.DEAD, Status.DEAD, Status.SUCCEEDED)
    with database.transaction(fresh_url) as connection:
        for table, state, run_ids in (
            ("sent_emails", "unknown", [older, newest]),
            ("payments", "intent", [charged]),  # the provider recognizes its key, so it is repeated
            ("sent_emails", "intent", [begun]),
        ):
            fetch_all(connection, EFFECTS.format(table=table, state=state), {"run_ids": run_ids})
    asked = ("runs", "retry", "--all", "--dry-run")
    assert rowcall(environment, *asked).stdout.splitlines()[1] == (
        "2 of these runs cannot succeed before you resolve an effect that may have happened:"
        " `rowcall effects list --state unknown --state intent`"
    )
    assert json.loads(rowcall(environment, *asked, "--json").stdout)["unresolved"] == 2
    assert json.loads(rowcall(environment, *asked, "--json", "--limit", "2").stdout)["unresolved"] == 1
    limited = rowcall(environment, *asked, "--limit", "2").stdout.splitlines()[0]
    assert limited.startswith(f"3 match, and --limit selects the newest 2 (2 dead), such as runs {begun}, {charged};")
    cancelled = rowcall(environment, "runs", "cancel", "--all", "--dry-run", "--json").stdout
    assert json.loads(cancelled)["unresolved"] is None
    warned = "2 of these runs cannot succeed before you resolve an effect that may have happened"
    assert warned in rowcall(environment, "runs", "retry", "--all").stderr


def test_cancelling_all_runs_spares_the_runs_that_carry_operations_out(
    environment: dict[str, str], fresh_url: str
) -> None:
    made(fresh_url, Status.DEAD, Status.QUEUED)
    rowcall(environment, "runs", "retry", "--status", "dead", "--no-wait")
    other = shown(environment, "show", "1")["run_id"]
    told = rowcall(environment, "runs", "cancel", "--all")
    assert told.stdout == "operation 2 is finished: 1 matched, 1 cancelled or asked to stop\n"
    own = shown(environment, "show", "2")["run_id"]
    assert found(fresh_url, [other, own]) == ["queued", "cancelled"]
    why = rowcall(environment, "runs", "explain", str(own)).stdout
    assert why.endswith(": operation 2 is finished and does not need it\n")


def test_a_run_whose_worker_is_dead_is_not_counted_as_cancelled(environment: dict[str, str], fresh_url: str) -> None:
    runs = made(fresh_url, Status.RUNNING, Status.QUEUED)
    told = rowcall(environment, "runs", "cancel", "--all").stdout
    assert told == "operation 1 is finished: 2 matched, 2 cancelled or asked to stop\n"
    assert found(fresh_url, runs) == ["running", "cancelled"]


def test_a_worker_that_cancels_all_runs_finishes_its_own(environment: dict[str, str], fresh_url: str) -> None:
    [run] = made(fresh_url, Status.QUEUED)
    rowcall(environment, "runs", "cancel", "--all", "--no-wait")
    assert rowcall(environment, "worker", "once", "--queues", "maintenance").returncode == 0
    assert found(fresh_url, [run, shown(environment, "show", "1")["run_id"]]) == ["cancelled", "succeeded"]


def test_waiting_runs_are_made_due_and_rescheduled(environment: dict[str, str], fresh_url: str) -> None:
    runs = made(fresh_url, Status.QUEUED, Status.FAILED, run_at="now() + interval '1 hour'")
    later = rowcall(environment, "runs", "reschedule", "--all", "--to", "2100-01-01T00:00:00Z")
    assert later.stdout == "operation 1 is finished: 2 matched, 2 changed\n"
    assert rowcall(environment, "runs", "run-now", "--all").stdout == "operation 2 is finished: 2 matched, 2 changed\n"
    assert found(fresh_url, runs) == ["queued", "queued"]
    assert rowcall(environment, "runs", "run-now", "--all").stdout == "no runs match, and nothing was changed\n"
    near = rowcall(environment, "runs", "retry", "--type", "nop").stdout
    assert near == "no runs match, and nothing was changed; did you mean 'noop'?\n"
    for option, typed, meant in (
        ("--type", "nop", "noop"),
        ("--queue", "defualt", "default"),
        ("--definition", "prune_run", "prune_runs"),
    ):
        dry = rowcall(environment, "runs", "cancel", option, typed, "--dry-run").stdout
        assert dry == f"0 match; dry run: nothing was changed; did you mean '{meant}'?\n"
    assert [row["id"] for row in shown(environment, "list")] == [2, 1]
    audited = json.loads(rowcall(environment, "audit", "--subject", "operation", "--json").stdout)
    assert [(row["action"], row["subject_id"]) for row in audited] == [("start", 2), ("start", 1)]


@pytest.mark.parametrize(
    ("status", "command"),
    [
        (Status.DEAD, ["retry"]),
        (Status.QUEUED, ["cancel"]),
        (Status.RUNNING, ["cancel", "--force"]),
        (Status.QUEUED, ["run-now"]),
        (Status.FAILED, ["reschedule", "--to", "2100-01-01T00:00:00Z"]),
    ],
)
def test_the_audit_log_keeps_the_reason_for_changing_a_run_by_its_id(
    environment: dict[str, str], fresh_url: str, status: Status, command: list[str]
) -> None:
    [run] = made(fresh_url, status)
    changed = rowcall(environment, "runs", *command, str(run), "--reason", "the mail server is back")
    assert changed.returncode == 0, changed.stderr
    [row] = json.loads(rowcall(environment, "audit", "--subject-id", str(run), "--subject", "run", "--json").stdout)
    assert (row["after"]["reason"], "reason" in row["before"]) == ("the mail server is back", False)
    assert "reason - > the mail server is back" in rowcall(environment, "audit", "--subject", "run").stdout
    assert shown(environment, "list") == []


def test_a_canary_waits_and_the_others_follow(environment: dict[str, str], fresh_url: str) -> None:
    runs = made(fresh_url, Status.DEAD, Status.DEAD, Status.DEAD)
    first = rowcall(environment, "runs", "retry", "--all", "--canary").stdout
    assert first == (
        "operation 1 is waiting: 3 matched, 1 changed\n"
        f"its canary is run {runs[-1]}: `rowcall operations continue 1` changes the others\n"
    )
    assert found(fresh_url, runs) == ["dead", "dead", "queued"]
    told = rowcall(environment, "operations", "show", "1").stdout
    became = f"its canary, run {runs[-1]}, was changed, and its status is now queued"
    assert f"{became}; the operation is waiting for an operator" in told
    assert "try: rowcall operations continue 1" in told
    goes_on = rowcall(environment, "operations", "continue", "1").stdout
    assert "workers carry it out: `rowcall operations show 1` shows its progress" in goes_on
    assert rowcall(environment, "worker", "once", "--queues", "maintenance").returncode == 0
    assert found(fresh_url, runs) == ["queued"] * 3
    assert rowcall(environment, "operations", "show", "1").stdout.startswith(
        "operation 1 is finished: 3 matched, 3 changed\n"
    )


def test_an_operation_is_shown_in_plain_words_with_the_filter_as_it_was_chosen(
    environment: dict[str, str], fresh_url: str
) -> None:
    made(fresh_url, Status.DEAD, Status.DEAD)
    rowcall(environment, "runs", "retry", "--all", "--canary")
    rowcall(environment, "runs", "cancel", "--status", "failed", "--status", "queued", "--type", "noop")
    every, some = (rowcall(environment, "operations", "show", number).stdout for number in ("1", "2"))
    ids = shown(environment, "show", "1")
    assert re.search("^filter +none: all runs that the action can change$", every, re.MULTILINE)
    assert re.search(f"^canary run +{ids['canary_run_id']}$", every, re.MULTILINE)
    assert re.search(f"^operation's own run +{ids['run_id']}$", every, re.MULTILINE)
    assert re.search("^filter +--status failed --status queued --type noop$", some, re.MULTILINE)


def test_an_operation_that_no_worker_carries_out_says_so(environment: dict[str, str], fresh_url: str) -> None:
    made(fresh_url, Status.DEAD)
    left = rowcall(environment, "runs", "retry", "--all", "--no-wait").stdout
    assert left.startswith("operation 1 is running: 1 matched, 0 changed\nworkers carry it out")
    canary = rowcall(environment, "runs", "retry", "--all", "--canary", "--no-wait").stdout
    assert canary.startswith("operation 2 is trying its canary: 1 matched, 0 changed\nworkers carry it out")
    rowcall(environment, "queues", "pause", "maintenance")
    told = rowcall(environment, "operations", "show", "1").stdout
    assert "queue maintenance has been paused since" in told
    assert "no live worker takes carry_out_operation from queue maintenance" in told
    assert "try: rowcall queues resume maintenance" in told
    stopped = rowcall(environment, "operations", "stop", "1")
    assert stopped.stdout == "operation 1 is stopped: 1 matched, 0 changed\n"
    again = rowcall(environment, "operations", "stop", "1")
    assert again.returncode == 1
    assert "operation 1 is stopped: stop is not allowed; allowed: continue" in again.stderr
    assert "an operator has stopped it" in rowcall(environment, "operations", "show", "1").stdout


def test_a_command_names_the_refusals(environment: dict[str, str], fresh_url: str) -> None:
    fact = {"natural_key": "'fact'", "unique_mode": "'until_failed'"}
    left, holder = made(fresh_url, Status.DEAD, Status.QUEUED, **fact)
    refused = rowcall(environment, "runs", "retry", "--all")
    assert refused.returncode == 1
    assert refused.stdout == "operation 1 is finished: 1 matched, 0 changed, 1 refused\n"
    assert "1 run was not changed: `rowcall operations refusals 1` gives the reasons" in refused.stderr
    [row] = shown(environment, "refusals", "1")
    assert (row["run_id"], f"run {holder} holds the natural key" in row["reason"]) == (left, True)
    assert "holds the natural key" in rowcall(environment, "operations", "refusals", "1").stdout


def test_ctrl_c_leaves_the_rest_to_the_workers(environment: dict[str, str], fresh_url: str, barred: Gate) -> None:
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, MANY, {"runs": 1200})
    barred.hold_change("NEW.changed >= 1000", "operations")
    with live_terminal(environment, "runs", "retry", "--all") as terminal:
        terminal.wait_for("1,200 matched, 500 changed")
        barred.wait()
        terminal.type("\x03")
        terminal.wait_for("workers continue operation 1")
        assert terminal.wait_for_end() == 1
    barred.open()
    assert rowcall(environment, "worker", "once", "--queues", "maintenance").returncode == 0
    assert shown(environment, "show", "1")["changed"] == 1200


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["runs", "retry"], 2, "specify ids, filters such as --status dead, or --all"),
        (["runs", "run-now"], 2, "specify ids, filters such as --status dead, or --all"),
        (["runs", "retry", "1", "--status", "dead"], 2, "not both"),
        (["runs", "retry", "1", "--canary"], 2, "ids cannot be combined with --all, "),
        (["runs", "retry", "1", "--reason", ""], 1, "reason: must be 1 to 500 printable characters"),
        (["runs", "retry", "--reason", "mail"], 2, "specify ids, filters such as --status dead, or --all"),
        (["runs", "cancel", "--all", "--force"], 2, "needs ids, not a filter"),
        (["runs", "reschedule", "--all"], 2, "Missing option '--to'"),
        (["runs", "retry", "--all", "--reason", ""], 1, "reason: must be 1 to 500 printable characters"),
        (["runs", "retry", "--status", "succeeded"], 1, "these statuses do: dead, cancelled"),
        (["operations", "show", "7"], 1, "there is no operation 7; `rowcall operations list` shows all operations"),
        (["operations", "continue", "7"], 1, "there is no operation 7"),
        (["operations", "refusals", "7"], 1, "there is no operation 7"),
    ],
)
def test_what_a_command_cannot_do_is_refused(
    environment: dict[str, str], fresh_url: str, arguments: list[str], code: int, complaint: str
) -> None:
    [run] = made(fresh_url, Status.DEAD)
    refused = rowcall(environment, *arguments)
    assert (refused.returncode, complaint in refused.stderr) == (code, True), refused.stderr
    assert found(fresh_url, [run]) == ["dead"]
    assert shown(environment, "list") == []
