"""The ids of a time: found by halves, whatever gaps there are, and never too narrow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one, fetch_value
from rowcall.job_types.builtin import NOOP
from rowcall.queue import Filter, enqueue, enqueue_many
from rowcall.queue.operations.actions import Action
from rowcall.queue.retention.erase import find
from rowcall.queue.views import created
from rowcall.queue.views.lists import IN_ORDER, list_runs
from tests.support.operations import done
from tests.support.processes import wait_until

# Its natural key is free again when its run has ended.
BOTH = replace(NOOP, name="both", key=lambda payload: f"both:{payload['n']}", unique="live")

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HALF_A_SECOND = timedelta(seconds=0.5)

# A run each minute from noon on, with more and more ids between them.
FILL = """
INSERT INTO rowcall.job_runs (id, job_type, created_at) OVERRIDING SYSTEM VALUE
SELECT 7 + number * number, 'noop', %(noon)s + number * interval '1 minute' FROM generate_series(0, 199) AS number
"""


@pytest.fixture
def filled(connection: PgConnection) -> PgConnection:
    """Return a connection to a database with 200 runs."""
    fetch_all(connection, FILL, {"noon": NOON})
    return connection


def begin(connection: PgConnection, moment: datetime, near: int = 1) -> tuple[int, int]:
    """Return the range of ids in which the runs of this time begin."""
    row = fetch_one(connection, IN_ORDER + created.BEGIN, {"moment": moment, "margin": 0, "near": near, **LIMITS})
    assert row
    return row["low"], row["high"]


WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %(pid)s"
CREATED = "SELECT created_at FROM rowcall.job_runs WHERE id = %(id)s"

LIMITS = {"milliseconds": 60_000, "waited": 60_000}


def wait_until_waits(looking: PgConnection, waiting: PgConnection) -> None:
    """Wait until this connection waits for a lock; others of the same server may wait in tests of their own."""
    pid = waiting.info.backend_pid
    wait_until(lambda: fetch_value(looking, WAITS, {"pid": pid}), "the request waits")


@pytest.mark.parametrize("number", [-5, 0, 1, 2, 99, 100, 198, 199, 200, 500])
@pytest.mark.parametrize("near", [1, 2, 50, 1000])
def test_all_runs_before_a_time_are_below_it_and_no_others(filled: PgConnection, number: int, near: int) -> None:
    low, high = begin(filled, NOON + number * MINUTE, near)
    assert high - low <= near
    before = "SELECT count(*) FROM rowcall.job_runs WHERE id < %(id)s"
    expected = min(max(number, 0), 200)
    assert fetch_value(filled, before, {"id": low}) <= expected <= fetch_value(filled, before, {"id": high})
    if near == 1:
        assert fetch_value(filled, before, {"id": high}) in (expected, expected + 1)


def test_the_first_and_the_last_time_that_can_be_asked_for(filled: PgConnection) -> None:
    first, last = datetime(2000, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert len(list_runs(filled, Filter(created_after=first, created_before=last), 200).runs) == 200
    assert list_runs(filled, Filter(created_before=first)).runs == []
    assert list_runs(filled, Filter(created_after=last)).runs == []


def test_an_empty_table_has_an_empty_range(connection: PgConnection) -> None:
    assert begin(connection, NOON) == (0, 1)


@pytest.mark.parametrize("near", [1, 1000])
def test_a_list_of_a_range_of_times_is_exact(filled: PgConnection, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(created, "NEAR", near)
    # The clock was set back by a minute after run 88: run 89 is a second older.
    delay = "UPDATE rowcall.job_runs SET created_at = created_at + interval '61 seconds' WHERE id = 7 + 88^2"
    fetch_all(filled, delay)
    asked = Filter(created_after=NOON + 89 * MINUTE + HALF_A_SECOND, created_before=NOON + 110 * MINUTE)
    numbers = [*range(109, 89, -1), 88]
    assert [run["id"] for run in list_runs(filled, asked).runs] == [7 + number**2 for number in numbers]


def test_a_run_has_the_time_of_its_id_even_late_in_a_transaction(connection: PgConnection) -> None:
    insert = "INSERT INTO rowcall.job_runs (job_type) VALUES ('noop') RETURNING id, created_at, now() AS begun"
    [later], [latest] = (fetch_all(connection, insert) for _ in range(2))
    assert later["begun"] < later["created_at"] < latest["created_at"]
    assert later["id"] < latest["id"]


def test_a_request_that_waits_for_the_key_of_another_has_the_time_at_which_it_took_its_ids(fresh_url: str) -> None:
    with (
        database.transaction(fresh_url) as first,
        database.transaction(fresh_url) as waiting,
        database.transaction(fresh_url) as between,
        ThreadPoolExecutor(1) as pool,
    ):
        enqueue(first, "noop", {"n": 0}, key="a-0")
        many = pool.submit(enqueue_many, waiting, "noop", [{"n": n} for n in range(3)], keys=["a-0", "a-1", "a-2"])
        wait_until_waits(between, waiting)
        other = enqueue(between, "noop", {}).run_id
        first.rollback()
        runs = [outcome.run_id for outcome in many.result()]
        latest = max(fetch_value(waiting, CREATED, {"id": run}) for run in runs)
        assert (max(runs) < other, latest < fetch_value(between, CREATED, {"id": other})) == (True, True)


REQUESTS: dict[str, Callable[[PgConnection], object]] = {
    "one": lambda connection: enqueue(connection, "noop", {}),
    "one with a key": lambda connection: enqueue(connection, "noop", {}, key="a"),
    "one with both keys": lambda connection: enqueue(connection, BOTH, {"n": 1}, key="a"),
    "one with a natural key": lambda connection: enqueue(connection, BOTH, {"n": 1}),
    "many": lambda connection: enqueue_many(connection, "noop", [{}, {}]),
    "many with keys": lambda connection: enqueue_many(connection, "noop", [{}, {}], keys=["a", "b"]),
    "many with both keys": lambda connection: enqueue_many(connection, BOTH, [{"n": 1}, {"n": 2}], keys=["a", "b"]),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_that_waits_for_the_table_has_the_time_at_which_it_took_its_ids(fresh_url: str, kind: str) -> None:
    with (
        database.transaction(fresh_url) as owner,
        database.transaction(fresh_url) as waiting,
        ThreadPoolExecutor(1) as pool,
    ):
        fetch_all(owner, "LOCK TABLE rowcall.job_runs")
        request = pool.submit(REQUESTS[kind], waiting)
        wait_until_waits(owner, waiting)
        released = fetch_value(owner, "SELECT clock_timestamp()")
        owner.rollback()
        request.result()
        assert fetch_value(waiting, "SELECT min(created_at) FROM rowcall.job_runs") > released


def test_a_request_that_waits_to_reserve_its_key_has_the_time_at_which_it_took_its_id(fresh_url: str) -> None:
    with (
        database.transaction(fresh_url) as first,
        database.transaction(fresh_url) as waiting,
        ThreadPoolExecutor(1) as pool,
    ):
        enqueue(first, BOTH, {"n": 1}, key="a")
        request = pool.submit(enqueue, waiting, BOTH, {"n": 2}, key="a")
        wait_until_waits(first, waiting)
        before = fetch_value(first, "SELECT clock_timestamp()")
        first.rollback()
        assert fetch_value(waiting, CREATED, {"id": request.result().run_id}) < before


def test_operations_and_erasing_miss_no_run_whatever_the_clock_did(
    filled: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(created, "NEAR", 1)
    # While these were inserted, the clock was three hours ahead.
    ahead = (
        "UPDATE rowcall.job_runs SET created_at = now() + interval '3 hours' WHERE id BETWEEN %(first)s AND %(last)s"
    )
    fetch_all(filled, ahead, {"first": 7 + 90**2, "last": 7 + 150**2})
    assert done(filled, Action.CANCEL, everything=True)["changed"] == 200 - 61
    found = find(filled, Filter(created_before=NOON + 300 * MINUTE))
    assert len(found.finished) == 200 - 61
