"""A run that was asked to cancel is cancelled, however its attempt ends, except by success."""

from __future__ import annotations

import pytest

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.status import Event, Status
from tests.queue.database.acts import attempt
from tests.support.rows import row_of, run_in


@pytest.mark.parametrize("event", [Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.UNCLAIM])
def test_a_run_that_was_asked_to_stop_has_ended_when_its_attempt_has(connection: PgConnection, event: Event) -> None:
    run = run_in(connection, Status.RUNNING, cancel_requested_at="now()")
    assert attempt(connection, event, run)
    now = row_of(connection, run["id"])
    assert (now["finished_at"], now["run_at"], now["locked_by"]) == (now["updated_at"], run["run_at"], None)
    kept = [one["outcome"] for one in queue.attempts_of(connection, run["id"])]
    assert kept == ([] if event is Event.UNCLAIM else [event])


def test_a_run_that_was_asked_to_stop_and_succeeds_has_succeeded(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, cancel_requested_at="now()")
    assert attempt(connection, Event.SUCCEED, run)
    assert row_of(connection, run["id"])["status"] == Status.SUCCEEDED
