"""The nightly cleanup deletes the oldest rows first, in batches, without waiting for others."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall_example.days import utc_day
from rowcall_example.queries import (
    count_expired_sessions,
    count_old_cache_entries,
    delete_expired_sessions,
    delete_old_cache_entries,
)
from tests.example.queries.rows import made, session, user

END_OF_DAY = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_day_is_utcs_and_ends_where_the_next_begins() -> None:
    assert utc_day(date(2026, 11, 20)) == (datetime(2026, 11, 20, tzinfo=UTC), END_OF_DAY)


def expiring(connection: PgConnection, *moments: str) -> list[int]:
    user_id = user(connection)
    return [session(connection, user_id, "2026-01-01 00:00", moment) for moment in moments]


def left(connection: PgConnection) -> list[int]:
    return [row["id"] for row in fetch_all(connection, "SELECT id FROM example.sessions ORDER BY id")]


def test_what_expired_before_the_moment_goes_and_what_expires_at_it_stays(connection: PgConnection) -> None:
    _, edge, later = expiring(connection, "2026-11-20 23:59:59.999999", "2026-11-21 00:00", "2027-01-01 00:00")
    assert delete_expired_sessions(connection, END_OF_DAY, 100) == 1
    assert left(connection) == [edge, later]


def test_a_batch_takes_the_oldest_first_and_no_more_than_its_limit(connection: PgConnection) -> None:
    ids = expiring(connection, "2026-11-03 00:00", "2026-11-01 00:00", "2026-11-02 00:00")
    assert delete_expired_sessions(connection, END_OF_DAY, 2) == 2
    assert left(connection) == [ids[0]]
    assert [delete_expired_sessions(connection, END_OF_DAY, 2) for _ in range(2)] == [1, 0]


def test_what_is_left_is_counted_up_to_a_bound(connection: PgConnection) -> None:
    expiring(connection, *["2026-11-01 00:00"] * 3, "2027-01-01 00:00")
    assert [count_expired_sessions(connection, END_OF_DAY, most) for most in (2, 100)] == [2, 3]


def test_two_cleanups_at_once_take_different_rows_and_wait_for_none(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        expiring(making, *["2026-11-01 00:00"] * 4)
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        fetch_all(other, "SET LOCAL lock_timeout = '1ms'")
        assert delete_expired_sessions(one, END_OF_DAY, 3) == 3
        assert delete_expired_sessions(other, END_OF_DAY, 3) == 1


@pytest.fixture
def entries(connection: PgConnection) -> PgConnection:
    for name, expires_at in (
        ("old", "2026-11-01"),
        ("older", "2026-10-01"),
        ("edge", "2026-11-21"),
        ("new", "2027-01-01"),
    ):
        made(connection, "cache_entries", name=name, value="1", expires_at=f"{expires_at} 00:00+00")
    return connection


def test_old_cache_entries_go_in_the_same_way(entries: PgConnection) -> None:
    assert [count_old_cache_entries(entries, END_OF_DAY, most) for most in (1, 100)] == [1, 2]
    assert delete_old_cache_entries(entries, END_OF_DAY, 1) == 1
    names = "SELECT name FROM example.cache_entries ORDER BY name"
    assert [row["name"] for row in fetch_all(entries, names)] == ["edge", "new", "old"]
    assert [delete_old_cache_entries(entries, END_OF_DAY, 10) for _ in range(2)] == [1, 0]
    assert [row["name"] for row in fetch_all(entries, names)] == ["edge", "new"]
