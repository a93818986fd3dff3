"""`rowcall runs show` (attempts around a retry, effects, what became of the details) and the sentences of `explain`."""

from __future__ import annotations

import json

import pytest

from rowcall.base import database
from rowcall.status import Event, Status
from tests.support.live_terminal import live_terminal
from tests.support.processes import rowcall
from tests.support.rows import run_in
from tests.support.run_log import insert_lines

ATTEMPTS = f"""
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, ended_at, error, error_type)
SELECT %(run_id)s, lease_no, attempt, outcome, 'a:1:b', now(), now(), error, 'PrinterError' FROM (
    VALUES (1, 1, '{Event.FAIL}', 'jam'), (2, 2, '{Event.SNOOZE}', NULL), (3, 2, '{Event.GIVE_UP}', 'fire'),
        (4, 1, '{Event.FAIL}', repeat('smoke ', 50))
) AS attempts(lease_no, attempt, outcome, error)
"""

EFFECTS = """
INSERT INTO rowcall.sent_emails
    (idempotency_key, run_id, lease_no, content_hash, state, applied_at, recipient, message_id)
VALUES ('welcome:7', %(run_id)s, 1, '', 'applied', now(), 'ada@example.com', '<7@x>'),
    ('welcome:8', %(run_id)s, 1, '', 'unknown', NULL, NULL, NULL)
"""


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The environment of a `rowcall` process on a database for the test."""
    return {**environment, "DATABASE_URL": fresh_url}


def made(url: str, *statements: str, status: Status = Status.FAILED, **columns: str) -> str:
    """Insert a run with what these statements add, and return its id."""
    with database.transaction(url) as connection:
        run = run_in(connection, status, **columns)
        for statement in statements:
            database.fetch_all(connection, statement, {"run_id": run["id"]})
    return str(run["id"])


def test_attempts_before_the_last_retry_are_told_from_those_after_it(
    environment: dict[str, str], fresh_url: str
) -> None:
    shown = rowcall(environment, "runs", "show", made(fresh_url, ATTEMPTS, attempts="1", lease_no="4")).stdout
    assert [line.split("  ")[0] for line in shown.splitlines()[-5:]] == [
        "lease_no",
        "1 before retry",
        "2 before retry",
        "3 before retry",
        "4",
    ]


def test_the_error_of_an_earlier_attempt_is_not_taken_for_one_of_the_attempt_that_runs(
    environment: dict[str, str], fresh_url: str
) -> None:
    error = {"last_error": "'no route'", "error_type": "'OSError'", "failed_at": "now()"}
    for status, line in (
        (Status.RUNNING, "before this attempt: OSError: no route"),
        (Status.DEAD, "OSError: no route"),
    ):
        shown = rowcall(environment, "runs", "show", made(fresh_url, status=status, **error)).stdout
        assert shown.splitlines()[1] == line


def test_an_attempt_has_the_same_number_in_the_table_and_in_the_log(
    environment: dict[str, str], fresh_url: str
) -> None:
    run_id = made(fresh_url, ATTEMPTS, attempts="1", lease_no="4")
    with database.transaction(fresh_url) as connection:
        insert_lines(connection, int(run_id), [7])
        database.fetch_all(connection, "UPDATE rowcall.run_logs SET lease_no = 4")
    shown = rowcall(environment, "runs", "show", run_id, "--utc").stdout.splitlines()
    [logged] = [line for line in shown if line.endswith("line 7")]
    [attempt] = [line for line in shown if line.endswith("smoke")]
    assert logged.split("  ")[1] == attempt.split("  ")[0] == "4"


def test_on_a_terminal_the_error_wraps_at_words_and_its_command_stays_whole(
    environment: dict[str, str], fresh_url: str
) -> None:
    command = "`rowcall effects list --state unknown`"
    error = f"the printer is on fire and nobody has put it out: {command} shows what may have been printed already"
    stack = f'Traceback (most recent call last):\n  File "x.py", line 1\nPrinterError: {error}\n'
    run_id = made(fresh_url, status=Status.DEAD, last_error=f"'{error}'", last_stack=f"'{stack}'")
    with live_terminal(environment, "runs", "show", run_id, columns=70) as terminal:
        assert terminal.wait_for_end() == 0
    lines = terminal.printed.splitlines()
    assert max(map(len, lines)) <= 70
    assert len([line for line in lines if command in line]) == 2
    assert '  File "x.py", line 1' in lines


def test_a_long_error_does_not_stretch_the_lines_of_the_other_attempts(
    environment: dict[str, str], fresh_url: str
) -> None:
    shown = rowcall(environment, "runs", "show", made(fresh_url, ATTEMPTS, attempts="1", lease_no="4")).stdout
    heading, *short, long = shown.splitlines()[-5:]
    assert heading.endswith("  error")
    assert max(map(len, short)) < 120 < len(long)


def test_a_run_says_how_many_effects_it_has(environment: dict[str, str], fresh_url: str) -> None:
    run_id = made(fresh_url, EFFECTS)
    assert (
        f"effects     1 applied, 1 unknown; `rowcall effects list --run {run_id}`\n"
        in rowcall(environment, "runs", "show", run_id).stdout
    )
    assert "effects" not in rowcall(environment, "runs", "show", made(fresh_url)).stdout


def test_effects_are_listed_with_what_finds_them_elsewhere(environment: dict[str, str], fresh_url: str) -> None:
    run_id = made(fresh_url, EFFECTS)
    _, sent = json.loads(rowcall(environment, "effects", "list", "--run", run_id, "--json").stdout)
    assert (sent["details"]["message_id"], sent["details"]["recipient"]) == ("<7@x>", "ada@example.com")
    assert "<7@x>" in rowcall(environment, "effects", "list", "--run", run_id, "--wide").stdout


def test_what_was_erased_is_not_called_pruned(environment: dict[str, str], fresh_url: str) -> None:
    pruned = made(fresh_url, status=Status.SUCCEEDED, pruned_at="now()")
    assert "Its details were pruned at " in rowcall(environment, "runs", "show", pruned).stdout
    erased = made(fresh_url, status=Status.SUCCEEDED)
    assert rowcall(environment, "erase", erased, "--yes").returncode == 0
    assert "Its details were erased at " in rowcall(environment, "runs", "show", erased).stdout
    assert "; payload erased " in rowcall(environment, "runs", "explain", erased).stdout


@pytest.mark.parametrize(
    ("status", "begins"),
    [
        (Status.RUNNING, "is running on "),
        (Status.SUCCEEDED, "succeeded at 2"),
        (Status.CANCELLED, "was cancelled at 2"),
        (Status.DEAD, "is dead: failed for good at 2"),
    ],
)
def test_an_explanation_is_a_sentence_about_the_run(
    environment: dict[str, str], fresh_url: str, status: Status, begins: str
) -> None:
    run_id = made(fresh_url, status=status)
    assert rowcall(environment, "runs", "explain", run_id).stdout.startswith(f"run {run_id} {begins}")
