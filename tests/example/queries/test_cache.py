"""Named values: computed in SQL, stored with an expiry time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall_example.errors import CacheNameUnknown
from rowcall_example.queries import refresh
from rowcall_example.queries.cache import COMPUTED
from tests.example.queries.rows import invoice, made, order, session, user

TODAY = "SELECT (now() AT TIME ZONE 'UTC')::date"


def test_sales_today_are_utcs_day_so_far(connection: PgConnection) -> None:
    user_id, today = user(connection), fetch_value(connection, TODAY)
    order(connection, user_id, f"{today} 00:00", 100)
    order(connection, user_id, f"{today} 00:00", 200)
    order(connection, user_id, f"{today} 00:00", 5, "USD")
    order(connection, user_id, f"{today - timedelta(days=1)} 23:59:59", 5, "USD")
    assert refresh(connection, "dashboard:sales_today").value == [
        {"currency": "EUR", "orders": 2, "amount_minor": 300},
        {"currency": "USD", "orders": 1, "amount_minor": 5},
    ]


def test_open_invoices_tell_how_many_are_overdue(connection: PgConnection) -> None:
    user_id, today = user(connection), fetch_value(connection, TODAY)
    for due_on in (today, today - timedelta(days=1), today + timedelta(days=1)):
        invoice(connection, user_id, str(due_on), amount_minor=100)
    invoice(connection, user_id, str(today), status="void")
    assert refresh(connection, "dashboard:open_invoices").value == [
        {"currency": "EUR", "invoices": 3, "amount_minor": 300, "overdue": 1}
    ]


def test_live_sessions_are_those_that_have_not_expired(connection: PgConnection) -> None:
    user_id, today = user(connection), fetch_value(connection, TODAY)
    session(connection, user_id, f"{today} 00:00", f"{today + timedelta(days=2)} 00:00")
    session(connection, user_id, f"{today} 00:00", f"{today} 00:00")
    assert refresh(connection, "dashboard:live_sessions").value == 1


@pytest.mark.parametrize("name", COMPUTED)
def test_each_value_is_known_without_a_single_row(connection: PgConnection, name: str) -> None:
    assert refresh(connection, name).value in ([], 0)


def test_a_refresh_replaces_what_was_there_and_says_until_when_it_holds(connection: PgConnection) -> None:
    made(
        connection, "cache_entries", name="dashboard:live_sessions", value="7",
        refreshed_at="2026-01-01 00:00+00", expires_at="2026-01-01 00:00+00",
    )  # fmt: skip
    entry = refresh(connection, "dashboard:live_sessions")
    [row] = fetch_all(connection, "SELECT name, value, refreshed_at, expires_at FROM example.cache_entries")
    assert row == vars(entry)
    assert (entry.value, entry.refreshed_at) == (0, fetch_value(connection, "SELECT now()"))
    assert entry.expires_at - entry.refreshed_at == COMPUTED[entry.name].holds


def test_a_name_that_nothing_computes_is_refused_with_those_that_are_known(connection: PgConnection) -> None:
    with pytest.raises(CacheNameUnknown, match="nothing computes a cache entry 'dashboard:x'; known: dashboard:live_s"):
        refresh(connection, "dashboard:x")
