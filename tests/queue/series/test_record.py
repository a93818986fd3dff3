"""Recording counts: each worker has its own rows, and repeating a write changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue.series.record import begin_counting, delete_old_run_counts, write_counts
from tests.support.counted import counted
from tests.support.housekeeping import prune

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def rows(connection: PgConnection, *columns: str) -> list[tuple[Any, ...]]:
    names = ", ".join(columns)
    return [tuple(row.values()) for row in fetch_all(connection, f"SELECT {names} FROM rowcall.run_counts ORDER BY 1")]


def test_a_write_that_is_repeated_doubles_nothing(connection: PgConnection) -> None:
    for _ in range(2):
        counted(connection, NOON, succeeded=3, ran=(1.0, 1.0, 1.0))
    assert rows(connection, "minute", "succeeded", "running[9]") == [(NOON, 3, 3)]


def test_the_counts_of_a_minute_grow(connection: PgConnection) -> None:
    counted(connection, NOON, succeeded=3, waited=(1.0,))
    counted(connection, NOON, succeeded=4, dead=1, waited=(1.0, 1.0))
    assert rows(connection, "minute", "succeeded", "dead", "waiting[9]") == [(NOON, 4, 1, 2)]


def test_workers_write_the_same_minute_without_waiting_for_each_other(module_url: str) -> None:
    with database.transaction(module_url) as first, database.transaction(module_url) as second:
        fetch_all(second, "SET LOCAL lock_timeout = 1")
        counted(first, NOON, worker="w1", succeeded=1)
        counted(second, NOON, worker="w2", succeeded=1)
        first.rollback()
        second.rollback()


def test_the_answer_is_the_databases_time(connection: PgConnection) -> None:
    before = fetch_value(connection, "SELECT date_part('epoch', clock_timestamp())")
    times = [begin_counting(connection, "9.9.9"), write_counts(connection, "w1", [])]
    after = fetch_value(connection, "SELECT date_part('epoch', clock_timestamp())")
    assert [before, *times, after] == sorted([before, *times, after])


def test_a_version_keeps_the_time_of_its_first_worker(connection: PgConnection) -> None:
    begin_counting(connection, "9.9.9")
    fetch_all(connection, "UPDATE rowcall.worker_versions SET first_seen_at = '2026-01-05Z'")
    begin_counting(connection, "9.9.9")
    seen = fetch_all(connection, "SELECT version, first_seen_at FROM rowcall.worker_versions")
    assert [tuple(row.values()) for row in seen] == [("9.9.9", datetime(2026, 1, 5, tzinfo=UTC))]


def test_old_counts_are_deleted_in_batches_and_with_the_nightly_pruning(connection: PgConnection) -> None:
    now: datetime = fetch_value(connection, "SELECT now()")
    for days in (7, 9, 10, 11):
        counted(connection, now.replace(second=0, microsecond=0), worker=f"w{days}", succeeded=1)
        moved = f"UPDATE rowcall.run_counts SET minute = minute - interval '{days} days' WHERE worker = 'w{days}'"
        fetch_all(connection, moved)
    assert delete_old_run_counts(connection, 2) == 2
    prune(connection)
    assert rows(connection, "worker") == [("w7",)]
