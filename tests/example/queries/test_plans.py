"""The plans of the example's statements on large tables: each reads only its index range."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall_example.days import utc_day
from rowcall_example.queries import cache, invoices, sales, sessions, weekly
from tests.support.plans import looked_at, plan

MANY = 100_000
USERS = 100
DAYS = 500
DAY = date(2026, 11, 16)
# How many rows of each table belong to one day, or to one user's two weeks.
A_DAY = MANY // DAYS
A_FORTNIGHT = 14 * A_DAY // USERS

# Without the foreign key checks, which would take most of the time.
FILL = f"""
SET session_replication_role = replica;
INSERT INTO example.users (email, name)
SELECT number || '@example.com', 'User ' || number FROM generate_series(1, {USERS}) AS number;
INSERT INTO example.orders (user_id, amount_minor, currency, ordered_at)
SELECT 1 + number %% {USERS}, number, 'EUR', '2026-11-30 12:00+00'::timestamptz - number %% {DAYS} * interval '1 day'
FROM generate_series(1, {MANY}) AS number;
INSERT INTO example.sessions (user_id, started_at, expires_at)
SELECT user_id, ordered_at, ordered_at + interval '1 hour' FROM example.orders;
INSERT INTO example.invoices (user_id, number, amount_minor, currency, due_on, status, paid_at)
SELECT user_id, id, amount_minor, currency, ordered_at::date, CASE WHEN id %% 2 = 0 THEN 'open' ELSE 'void' END, NULL
FROM example.orders;
INSERT INTO example.cache_entries (name, value, expires_at) SELECT 'entry:' || id, '1', expires_at FROM example.sessions
"""


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    database.fetch_all(connection, FILL, {})
    for table in ("users", "orders", "sessions", "invoices", "cache_entries"):
        database.fetch_all(connection, f"VACUUM (ANALYZE) example.{table}")
    yield connection
    connection.close()


AT_ONCE = 500
BATCH = {"before": utc_day(DAY)[0], "limit": AT_ONCE, "most": AT_ONCE}
WEEK = {**weekly.bounds(DAY - timedelta(days=7), DAY + timedelta(days=6)), "zone": "Europe/Berlin"}
SALES = dict(zip(("start", "end"), utc_day(DAY), strict=True))
REMINDED = {"day": DAY, "after_id": 0, "limit": 500}


@pytest.mark.parametrize(
    ("sql", "parameters", "table", "index", "most"),
    [
        (weekly.ORDERS, {"user_id": 1, **WEEK}, "orders", "orders_user", 2 * A_FORTNIGHT),
        (weekly.SESSIONS, {"user_id": 1, **WEEK}, "sessions", "sessions_user", 2 * A_FORTNIGHT),
        (sales.HOURS, SALES, "orders", "orders_day", A_DAY),
        (sales.CUSTOMERS, {**SALES, "most": 500}, "orders", "orders_day", A_DAY),
        (invoices.DUE_INVOICES, REMINDED, "invoices", "invoices_due", 3 * A_DAY),
        (invoices.DUE_INVOICES, {**REMINDED, "after_id": MANY // 2}, "invoices", "invoices_due", 3 * A_DAY),
        (invoices.GET_INVOICE, {"invoice_id": 77}, "invoices", "invoices_pkey", 1),
        (invoices.MARK_PAID, {"invoice_id": 78, "amount_minor": 1, "currency": "EUR"}, "invoices", "invoices_pkey", 2),
        (sessions.DELETE_EXPIRED, BATCH, "sessions", "sessions_expiry", 3 * AT_ONCE),
        (sessions.COUNT_EXPIRED, BATCH, "sessions", "sessions_expiry", AT_ONCE),
        (cache.DELETE_OLD, BATCH, "cache_entries", "cache_entries_expiry", 3 * AT_ONCE),
        (cache.COUNT_OLD, BATCH, "cache_entries", "cache_entries_expiry", AT_ONCE),
        (cache.SALES_TODAY, {}, "orders", "orders_day", A_DAY),
        (cache.LIVE_SESSIONS, {}, "sessions", "sessions_expiry", 10 * A_DAY),
    ],
)  # fmt: skip
def test_a_statement_looks_at_what_it_answers_for(
    filled: PgConnection, sql: str, parameters: dict[str, Any], table: str, index: str, most: int
) -> None:
    nodes = plan(filled, sql, parameters)
    assert looked_at(nodes, table) <= most
    assert index in {node.get("Index Name") for node in nodes}
