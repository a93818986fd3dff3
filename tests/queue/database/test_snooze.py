"""Snoozes: their effect on the run, and what the history keeps."""

from __future__ import annotations

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all
from rowcall.status import Event, Status
from tests.queue.database.acts import LATER, attempt, lease_of
from tests.support.rows import WORKER, row_of, run_in

CLAIM_AGAIN = """
UPDATE rowcall.job_runs
SET status = 'running', attempts = attempts + 1, lease_no = lease_no + 1, locked_by = %(worker)s,
    locked_until = now() + interval '2 minutes'
WHERE id = %(run_id)s
"""


def test_a_snoozed_attempt_is_given_back(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert attempt(connection, Event.SNOOZE, run)
    now = row_of(connection, run["id"])
    assert (now["attempts"], now["run_at"], now["lease_no"]) == (run["attempts"] - 1, LATER, run["lease_no"])


def test_a_snooze_until_a_time_that_has_come_lasts_a_second(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert queue.snooze(connection, lease_of(run), run["created_at"], "now")
    now = row_of(connection, run["id"])
    assert (now["run_at"] - now["updated_at"]).total_seconds() == 1


def test_of_several_snoozes_in_a_row_the_history_keeps_the_last(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    for lease_no, event in enumerate([Event.SNOOZE, Event.SNOOZE, Event.FAIL, Event.SNOOZE, Event.SNOOZE], 3):
        assert attempt(connection, event, {**run, "lease_no": lease_no})
        fetch_all(connection, CLAIM_AGAIN, {"worker": WORKER, "run_id": run["id"]})
    kept = [(row["lease_no"], row["outcome"]) for row in queue.attempts_of(connection, run["id"])]
    assert kept == [(4, Event.SNOOZE), (5, Event.FAIL), (7, Event.SNOOZE)]


def test_a_snooze_without_a_pause_leaves_the_run_as_late_as_it_was(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, run_at="now() - interval '1 hour'")
    assert queue.snooze(connection, lease_of(run), None, "the broker is away", pause=None)
    assert row_of(connection, run["id"])["run_at"] == run["run_at"]
