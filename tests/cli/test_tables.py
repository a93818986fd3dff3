"""Lists fit the terminal of a person; a pipe and --json get everything, exactly."""

from __future__ import annotations

import json

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from tests.support.processes import APPS, ROOT, rowcall
from tests.support.terminal import on_terminal

ERROR = "no route to the printer " + "in the cellar " * 20 + "\x1b[31m\nsecond line"

ROWS = """
INSERT INTO rowcall.job_runs (
    id, job_type, queue, payload, status, attempts, max_attempts, lease_no, created_at, run_at, started_at, finished_at,
    last_error, error_type, last_stack, failed_at
) OVERRIDING SYSTEM VALUE VALUES
    (3, 'noop', 'default', '{}', 'queued', 0, 10, 0, now(), now() + '3 days', NULL, NULL, NULL, NULL, NULL, NULL),
    (2, 'noop', 'default', '{}', 'dead', 2, 2, 2, now() - '2 h'::interval, now() - '2 h'::interval,
        now() - '1 h'::interval, now() - '5 min'::interval, %(error)s, 'PrinterError', %(stack)s, now()),
    (1, 'noop', 'default', '{}', 'succeeded', 2, 2, 2, now() - '100 days'::interval, now() - '100 days'::interval,
        now() - '99 days'::interval, now() - '99 days'::interval, 'at first', 'PrinterError', NULL, now())
"""

ATTEMPTS = """
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, ended_at, error, error_type)
SELECT 2, number, greatest(number, 1), CASE number WHEN 0 THEN 'snooze' ELSE 'fail' END, 'a:1:b', now(), now(),
    'as before', 'PrinterError'
FROM generate_series(0, 2) AS number
"""

STACK = 'Traceback (most recent call last):\n  File "pack.py", line 7, in pack\nPrinterError: no route'


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The environment of a `rowcall` process on a database with these three runs."""
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, ROWS, {"error": ERROR, "stack": STACK})
        database.fetch_all(connection, ATTEMPTS)
    return {**environment, "DATABASE_URL": fresh_url}


def cells(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell]


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_list_fits_the_terminal_and_cuts_what_is_longest(environment: dict[str, str], columns: int) -> None:
    lines = on_terminal(environment, "runs", "list", columns=columns)
    assert len(lines) == 4
    assert columns - 1 <= max(map(len, lines)) <= columns
    dead = next(line for line in lines if " dead " in line)
    assert dead.endswith("…")
    assert "  PrinterErr" in dead


def test_a_narrow_terminal_gets_what_matters_most(environment: dict[str, str]) -> None:
    heading, *lines = on_terminal(environment, "runs", "list", columns=40)
    assert heading.split() == ["id", "job_type", "status", "error"]
    assert max(map(len, [heading, *lines])) <= 40
    assert [line.split()[2] for line in lines] == ["queued", "dead", "succeeded"]
    assert len(on_terminal(environment, "runs", "list", columns=12)[0]) <= 12


def test_times_are_relative_to_the_databases_clock(environment: dict[str, str]) -> None:
    [queued] = [line for line in on_terminal(environment, "runs", "list") if " queued " in line]
    assert "in 2 days" in queued
    [dead] = [line for line in on_terminal(environment, "runs", "list") if " dead " in line]
    assert "5 min ago" in dead


def test_what_is_long_past_is_a_date(environment: dict[str, str], connection: PgConnection) -> None:
    [old] = [line for line in on_terminal(environment, "runs", "list") if " succeeded " in line]
    date = database.fetch_value(connection, "SELECT (now() - '99 days'::interval)::date::text")
    assert date in old


def test_a_pipe_a_wide_list_and_utc_show_times_exactly_and_texts_whole(environment: dict[str, str]) -> None:
    piped = rowcall(environment, "runs", "list").stdout
    assert "in the cellar " * 20 in piped
    assert "+00:00" in piped
    assert "in the cellar " * 20 in "".join(on_terminal(environment, "runs", "list", "--wide"))
    assert [line.count("Z  ") for line in on_terminal(environment, "runs", "list", "--utc")] == [0, 1, 2, 2]


def test_an_error_is_one_line_and_controls_no_terminal(environment: dict[str, str]) -> None:
    for command in (["runs", "list", "--wide"], ["runs", "show", "2"]):
        seen = "\n".join(on_terminal(environment, *command))
        assert r"\x1b[31m\nsecond line" in seen
        assert "\x1b[31m\nsecond" not in seen


def test_the_error_that_a_run_got_over_is_not_shown(environment: dict[str, str]) -> None:
    listed = rowcall(environment, "runs", "list", "--status", "succeeded").stdout
    assert "at first" not in listed
    assert "at first" not in rowcall(environment, "runs", "show", "1").stdout
    assert json.loads(rowcall(environment, "runs", "show", "1", "--json").stdout)["last_error"] == "at first"


def test_a_failed_run_shows_its_error_first_and_the_traceback_last(environment: dict[str, str]) -> None:
    lines = rowcall(environment, "runs", "show", "2").stdout.splitlines()
    assert lines[0] == "run 2  noop  dead"
    assert lines[1].startswith("PrinterError: no route to the printer")
    assert "PrinterError: no route" in lines
    assert lines.index("PrinterError: no route") > next(i for i, line in enumerate(lines) if line.startswith("run_at"))


def test_attempts_add_up_after_a_retry(environment: dict[str, str]) -> None:
    shown = rowcall(environment, "runs", "show", "2").stdout
    assert "attempts    2 of 2\n" in shown.replace("attempts     ", "attempts    ")
    assert rowcall(environment, "runs", "retry", "2").returncode == 0
    assert "0 of 2 since the last retry, 2 before it" in rowcall(environment, "runs", "show", "2").stdout
    assert rowcall(environment, "worker", "once").returncode == 0
    assert "1 of 2 since the last retry, 2 before it" in rowcall(environment, "runs", "show", "2").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["runs", "list", "--status", "failed", "--queue", "mail"], "no runs match --status failed --queue mail"),
        (["runs", "list", "--type", "nop"], "no runs match --type nop; did you mean 'noop'?"),
        (["runs", "list", "--type", "of_old"], "no runs match --type of_old"),
        (["effects", "list", "--state", "unknown", "--run", "7"], "no effects match --state unknown --run 7"),
        (["effects", "list"], "there are no effects"),
    ],
)
def test_an_empty_answer_says_what_was_looked_for(environment: dict[str, str], words: list[str], said: str) -> None:
    assert rowcall(environment, *words).stdout == f"{said}\n"


@pytest.mark.parametrize("listed", ["queues", "definitions", "keys", "effects"])
@pytest.mark.parametrize("columns", [40, 80])
def test_every_list_fits_a_narrow_terminal(environment: dict[str, str], listed: str, columns: int) -> None:
    assert rowcall(environment, "keys", "create", "x" * 60, "--scope", "read").returncode == 0
    # An empty list is a sentence.
    lines = [line for line in on_terminal(environment, listed, "list", columns=columns) if "  " in line]
    assert max(map(len, lines), default=0) <= columns


def test_job_types_are_listed_with_what_their_payloads_need(environment: dict[str, str]) -> None:
    listed = {one["job_type"]: one for one in json.loads(rowcall(environment, "types", "--json").stdout)}
    assert listed["noop"]["payload"] == []
    assert {"name": "batch", "type": "integer", "required": False} in listed["prune_runs"]["payload"]
    plain = rowcall(environment, "types").stdout
    assert (
        "[keep_days object], [types object], [archive any], [keep_archive_months integer], [export_archive string]"
        in plain
    )
    assert "False" not in plain


def test_a_job_type_that_is_handed_over_is_listed_with_its_queue(environment: dict[str, str]) -> None:
    here = {**environment, "ROWCALL_APP": "parcels", "PYTHONPATH": f"{APPS}:{ROOT}"}
    listed = {one["job_type"]: one for one in json.loads(rowcall(here, "types", "--json").stdout)}
    assert listed["parcel_send"]["handover"] == {"task": "parcels.tasks.send", "queue": "parcels", "wait": 900}
    assert listed["parcel_weigh"]["handover"] is None
    [row] = [line for line in on_terminal(here, "types", columns=100) if line.startswith("parcel_send")]
    assert "queue parcels" in row
    [row] = [line for line in on_terminal(here, "types", "--wide", columns=100) if line.startswith("parcel_send")]
    assert "queue parcels, task parcels.tasks.send, wait 900 s" in row


@pytest.mark.parametrize("group", [[], ["runs"], ["definitions"], ["keys"], ["queues"], ["effects"], ["worker"]])
def test_help_cuts_no_sentence(environment: dict[str, str], group: list[str]) -> None:
    helped = on_terminal(environment, *group, "--help", columns=80)
    assert helped[-1]
    assert not [line for line in helped if line.endswith("...") and "]..." not in line]
