"""What a reader of events sees: each run's new status, however its transaction became visible."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import Done, Failure, Lease
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.operations.actions import Action
from rowcall.queue.operations.carry_out import carry_on
from rowcall.queue.operations.request import Requested
from rowcall.queue.operations.steer import start
from rowcall.queue.views.events import (
    CHANGED,
    LIVE,
    LIVE_MOST,
    OPERATIONS,
    RESET,
    RUNNING,
    Event,
    OperationEvents,
    RunEvents,
    WorkerEvents,
    now,
)
from rowcall.queue.views.filters import Filter
from rowcall.status import Status
from tests.support.plans import looked_at, plan
from tests.support.rows import WORKER, live_runs, run_in

OPERATOR = Operator("a test")
FAILURE = Failure("it broke", "ValueError")


@pytest.fixture
def connection(fresh_url: str) -> Iterator[PgConnection]:
    """Yield a connection that commits each statement, as a worker's does."""
    connection = database.connect(fresh_url)
    connection.autocommit = True
    yield connection
    connection.close()


@pytest.fixture
def reader(connection: PgConnection) -> RunEvents:
    """Return a reader that has read what was there."""
    run_in(connection, Status.QUEUED)
    run_in(connection, Status.DEAD)
    reader = RunEvents()
    assert reader.read(connection) == []
    return reader


def seen(events: list[Event]) -> list[tuple[int, str]]:
    assert {event.kind for event in events} <= {"run"}
    return [(event.data["id"], event.data["status"]) for event in events]


def lease_of(row: database.Row) -> Lease:
    return Lease(WORKER, row["id"], row["lease_no"])


def test_each_new_status_is_an_event_once(connection: PgConnection, reader: RunEvents) -> None:
    run_id = queue.enqueue(connection, "noop", {"secret": 1}).run_id
    [event] = reader.read(connection)
    assert event.kind == "run"
    assert {**event.data, "at": None} == {
        "id": run_id,
        "job_type": "noop",
        "queue": "default",
        "status": "queued",
        "attempts": 0,
        "at": None,
    }
    assert reader.read(connection) == []
    queue.cancel(connection, run_id, OPERATOR)
    assert seen(reader.read(connection)) == [(run_id, "cancelled")]
    queue.retry(connection, run_id, OPERATOR)
    assert seen(reader.read(connection)) == [(run_id, "queued")]
    assert reader.read(connection) == []


def test_what_a_run_becomes_between_two_reads_is_seen_as_its_last_status(
    connection: PgConnection, reader: RunEvents
) -> None:
    running = run_in(connection, Status.RUNNING)
    assert seen(reader.read(connection)) == [(running["id"], "running")]
    queue.succeed(connection, [Done(lease_of(running), None)])
    short = run_in(connection, Status.SUCCEEDED)
    assert seen(reader.read(connection)) == [(running["id"], "succeeded"), (short["id"], "succeeded")]
    assert reader.read(connection) == []


def test_a_run_of_long_ago_that_fails_for_good_is_seen(connection: PgConnection, reader: RunEvents) -> None:
    old = run_in(connection, Status.RUNNING, created_at="now() - interval '1 day'")
    assert seen(reader.read(connection)) == [(old["id"], "running")]
    queue.give_up(connection, lease_of(old), FAILURE)
    assert seen(reader.read(connection)) == [(old["id"], "dead")]


def test_a_run_whose_transaction_commits_late_is_seen_then(
    fresh_url: str, connection: PgConnection, reader: RunEvents
) -> None:
    with database.transaction(fresh_url) as late:
        run_id = queue.enqueue(late, "noop", {}).run_id
        other = queue.enqueue(connection, "noop", {"other": 1}).run_id
        assert seen(reader.read(connection)) == [(other, "queued")]
    assert seen(reader.read(connection)) == [(run_id, "queued")]


def test_when_more_wait_than_are_compared_running_and_failing_runs_are_seen_nevertheless(
    connection: PgConnection,
) -> None:
    live_runs(connection, "full")
    reader = RunEvents(live_most=2)
    assert reader.read(connection) == []
    running = run_in(connection, Status.RUNNING)
    failing = run_in(connection, Status.RUNNING, created_at="now() - interval '1 day'", queue="'other'")
    queue.give_up(connection, lease_of(failing), FAILURE)
    assert seen(reader.read(connection)) == [(running["id"], "running"), (failing["id"], "dead")]
    queue.succeed(connection, [Done(lease_of(running), None)])
    assert seen(reader.read(connection)) == [(running["id"], "succeeded")]


def test_a_reader_says_when_it_begins_and_ends_to_compare_only_running_runs(connection: PgConnection) -> None:
    reader = RunEvents(live_most=2)
    assert reader.read(connection) == []
    live_runs(connection, "full")
    events = reader.read(connection)
    assert ([event.kind for event in events], events[0]) == (["partial", "run", "run", "run"], Event("partial", {}))
    fetch_all(connection, "DELETE FROM rowcall.job_runs WHERE status = 'queued'")
    assert reader.read(connection) == [RESET]
    assert reader.read(connection) == []


def test_workers_that_start_and_go_are_events(connection: PgConnection) -> None:
    add = """
    INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency, heartbeat_at)
    VALUES (%(id)s, 'a', 1, '1', '{}', 1, now() - %(silent)s * interval '1 second')
    """
    fetch_all(connection, add, {"id": "first", "silent": 0})
    reader = WorkerEvents(heartbeat=30)
    assert reader.read(connection) == []
    fetch_all(connection, add, {"id": "second", "silent": 0})
    fetch_all(connection, add, {"id": "silent", "silent": 200})
    fetch_all(connection, "UPDATE rowcall.workers SET stopped_at = now() WHERE id = 'first'")
    assert reader.read(connection) == [
        Event("worker", {"id": "second", "state": "started"}),
        Event("worker", {"id": "first", "state": "gone"}),
    ]
    assert reader.read(connection) == []


def test_each_progress_of_an_operation_is_an_event(connection: PgConnection) -> None:
    dead = [run_in(connection, Status.DEAD)["id"] for _ in range(3)]
    reader = OperationEvents()
    assert reader.read(connection) == []
    started = start(connection, Requested(Action.RETRY, Filter(job_type="noop")), OPERATOR).operation
    assert [progress_of(event) for event in reader.read(connection)] == [("running", 0, 3)]
    carry_on(connection, started["id"], batch=2)
    assert [progress_of(event) for event in reader.read(connection)] == [("running", 2, 3)]
    assert reader.read(connection) == []
    carry_on(connection, started["id"], batch=2)
    assert [progress_of(event) for event in reader.read(connection)] == [("finished", len(dead), 3)]
    assert reader.read(connection) == []


def progress_of(event: Event) -> tuple[str, int, int]:
    assert (event.kind, event.data["action"], event.data["refused"]) == ("operation", "retry", 0)
    return event.data["status"], event.data["changed"], event.data["matched"]


def test_a_read_of_operations_looks_at_few_of_many(connection: PgConnection) -> None:
    fill = """
    INSERT INTO rowcall.operations (action, filter, status, matched, counted_all, requested_by, key_owner,
        request_fingerprint, finished_at)
    SELECT 'retry', '{}', 'finished', 0, true, 'a test', '', '', now() FROM generate_series(1, 20000);
    ANALYZE rowcall.operations
    """
    fetch_all(connection, fill)
    assert looked_at(plan(connection, BY_INDEX + OPERATIONS, {"gone": [1, 2]}), "operations") < 500


def test_what_a_read_looks_at_depends_neither_on_finished_runs_nor_on_a_backlog(connection: PgConnection) -> None:
    fill = """
    INSERT INTO rowcall.job_runs (job_type, status, finished_at, created_at, attempts)
    SELECT 'noop', 'succeeded', now(), now() - interval '1 hour', 1 FROM generate_series(1, 50000);
    INSERT INTO rowcall.job_runs (job_type, created_at) SELECT 'noop', now() - interval '1 hour'
    FROM generate_series(1, 50000);
    INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, 5000)
    """
    fetch_all(connection, fill)
    fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_runs")
    assert looked_at(plan(connection, BY_INDEX + LIVE, {"limit": LIVE_MOST + 1})) == LIVE_MOST + 1
    assert looked_at(plan(connection, BY_INDEX + RUNNING, {})) <= 2001
    nodes = plan(connection, BY_INDEX + CHANGED, {"gone": [1, 2, 3]})
    # The newest are found in the index, and then their rows by the primary key.
    assert looked_at(nodes) <= 2 * 2000 + 3
    assert {"job_runs_pkey", "job_attempts_failed"} <= {node.get("Index Name") for node in nodes}


def test_the_time_of_a_read_is_that_of_its_transaction(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        first = now(connection)
        RunEvents().read(connection)
        assert now(connection) == first
