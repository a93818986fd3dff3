"""A new run notifies nobody, unless a worker that serves it sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.fragments import CHANNEL
from rowcall.queue.sleepers import fall_asleep
from rowcall.queue.workers import Registration, register


@pytest.fixture
def listener(fresh_url: str) -> Iterator[PgConnection]:
    connection = database.connect(fresh_url)
    connection.autocommit = True
    fetch_all(connection, f"LISTEN {CHANNEL}")
    yield connection
    connection.close()


def sleeper(listener: PgConnection, queues: list[str] | None, *job_types: str) -> None:
    register(listener, Registration("worker-1", "host", 1, "1", queues, list(job_types), 10))
    fall_asleep(listener, "worker-1", 60)


def heard(listener: PgConnection) -> int:
    """Return the number of notifications received."""
    fetch_all(listener, "SELECT 1")
    notifications = len(listener.notifies)
    listener.notifies.clear()
    return notifications


@pytest.mark.parametrize(
    ("queues", "job_types", "expected"),
    [
        (None, ["other", "noop"], 1),
        (["mail", "default"], ["noop"], 1),
        (["mail"], ["noop"], 0),
        (None, ["other"], 0),
    ],
    ids=["all queues", "this queue", "another queue", "another type"],
)
def test_a_worker_that_serves_the_run_is_notified_while_it_sleeps(
    listener: PgConnection, fresh_url: str, queues: list[str] | None, job_types: list[str], expected: int
) -> None:
    sleeper(listener, queues, *job_types)
    for runs in (1, 3):
        with database.transaction(fresh_url) as connection:
            queue.enqueue_many(connection, "noop", [{}] * runs)
        assert heard(listener) == expected


def test_nobody_is_notified_where_nobody_sleeps(listener: PgConnection, fresh_url: str) -> None:
    register(listener, Registration("worker-1", "host", 1, "1", None, ["noop"], 10))
    with database.transaction(fresh_url) as connection:
        queue.enqueue(connection, "noop", {})
        queue.enqueue_many(connection, "noop", [{}] * 3)
    assert heard(listener) == 0


def test_a_sleeper_without_two_heartbeats_is_not_notified(listener: PgConnection, fresh_url: str) -> None:
    sleeper(listener, None, "noop")
    fetch_all(listener, "UPDATE rowcall.workers SET sleeps_until = now() - interval '1 second'")
    with database.transaction(fresh_url) as connection:
        queue.enqueue(connection, "noop", {})
    assert heard(listener) == 0


def test_what_is_due_later_wakes_nobody(listener: PgConnection, fresh_url: str) -> None:
    sleeper(listener, None, "noop")
    with database.transaction(fresh_url) as connection:
        queue.enqueue_many(connection, "noop", [{}] * 3, run_at=datetime.now(UTC) + timedelta(hours=1))
    assert heard(listener) == 0


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_transaction_without_a_number_sees_a_worker_that_falls_asleep(
    listener: PgConnection, fresh_url: str, isolation: str
) -> None:
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        fetch_all(connection, "SELECT count(*) FROM rowcall.workers")
        sleeper(listener, None, "noop")
        queue.enqueue(connection, "noop", {})
    assert heard(listener) == 1


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_transaction_that_keeps_its_snapshot_always_notifies(
    listener: PgConnection, fresh_url: str, isolation: str
) -> None:
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        queue.enqueue(connection, "noop", {})
    assert heard(listener) == 1
