"""What an operator's change of a run leaves as it was, and whom it wakes; and what is kept of an attempt that ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import Connection, PgConnection, Row, fetch_all
from rowcall.queue import ClaimRequest, Failure, Lease
from rowcall.queue.fragments import CHANNEL
from rowcall.queue.sleepers import fall_asleep
from rowcall.queue.workers import Registration, register
from rowcall.status import Status
from tests.support.rows import row_of, run_in

OPERATOR = Operator("a test")
LATER = datetime(2100, 1, 1, tzinfo=UTC)
WAITING = {"run_at": "now() + interval '1 hour'", "attempts": "2"}


def reschedule(connection: Connection, run_id: int, operator: Operator) -> Row:
    return queue.reschedule(connection, run_id, operator, LATER)


@pytest.mark.parametrize("change", [queue.run_now, reschedule])
def test_a_run_that_is_made_due_at_another_time_keeps_its_attempts(
    connection: PgConnection, change: Callable[[Connection, int, Operator], Row]
) -> None:
    run = run_in(connection, Status.FAILED, **WAITING)
    change(connection, run["id"], OPERATOR)
    now = row_of(connection, run["id"])
    assert now["run_at"] != run["run_at"]
    assert now["attempts"] == 2


def test_a_rescheduled_run_is_due_at_the_time_that_was_asked_for(connection: PgConnection) -> None:
    run = run_in(connection, Status.FAILED, **WAITING)
    reschedule(connection, run["id"], OPERATOR)
    assert row_of(connection, run["id"])["run_at"] == LATER


@pytest.fixture
def listener(fresh_url: str) -> Iterator[PgConnection]:
    """Yield a connection that listens for a worker which sleeps."""
    listener = database.connect(fresh_url)
    listener.autocommit = True
    fetch_all(listener, f"LISTEN {CHANNEL}")
    register(listener, Registration("worker-1", "host", 1, "1", None, ["noop"], 10))
    fall_asleep(listener, "worker-1", 60)
    yield listener
    listener.close()


@pytest.mark.parametrize(
    ("change", "status"), [(queue.run_now, Status.FAILED), (reschedule, Status.FAILED), (queue.retry, Status.DEAD)]
)
def test_a_worker_that_sleeps_is_woken_for_a_run_that_an_operator_makes_due(
    listener: PgConnection, fresh_url: str, change: Callable[[Connection, int, Operator], Row], status: Status
) -> None:
    with database.transaction(fresh_url) as connection:
        run_id = run_in(connection, status)["id"]
    with database.transaction(fresh_url) as connection:
        change(connection, run_id, OPERATOR)
    fetch_all(listener, "SELECT 1")
    assert len(listener.notifies) == 1


def test_of_a_failed_attempt_its_start_and_its_error_with_the_stack_are_kept(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, started_at="now() - interval '5 minutes'")
    lease = Lease(run["locked_by"], run["id"], run["lease_no"])
    queue.fail(connection, lease, Failure("no such user", "KeyError", "line 1\nline 2"), 0)
    [kept] = queue.attempts_of(connection, run["id"])
    assert (kept["error"], kept["error_type"], kept["stack"]) == ("no such user", "KeyError", "line 1\nline 2")
    assert (kept["started_at"], kept["permanent"]) == (run["started_at"], False)


def test_of_an_attempt_whose_lease_expired_the_reason_is_kept(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'")
    queue.claim(connection, "worker-2", ClaimRequest({"noop": 60.0}, 10))
    [kept] = queue.attempts_of(connection, run["id"])
    assert kept["error"] == row_of(connection, run["id"])["last_error"]
    assert f"lease of {run['locked_by']} expired" in kept["error"]
