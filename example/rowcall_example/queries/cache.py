"""Cache entries: named values, computed here in SQL, stored until they expire, and deleted later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rowcall_example.errors import CacheNameUnknown
from rowcall_example.sql import Connection, fetch_one, fetch_value


@dataclass(frozen=True)
class Computed:
    """How to compute a named value: an SQL expression of type jsonb, and how long the value is valid."""

    sql: str
    holds: timedelta


# Uses the index orders_day: the day so far, in UTC.
SALES_TODAY = """
SELECT coalesce(jsonb_agg(to_jsonb(sales) ORDER BY currency), '[]') FROM (
    SELECT currency, count(*) AS orders, sum(amount_minor) AS amount_minor FROM example.orders
    WHERE ordered_at >= date_trunc('day', now(), 'UTC')
        AND ordered_at < date_trunc('day', now(), 'UTC') + interval '1 day'
    GROUP BY currency
) AS sales
"""

# The index invoices_due contains exactly the open invoices.
OPEN_INVOICES = """
SELECT coalesce(jsonb_agg(to_jsonb(invoiced) ORDER BY currency), '[]') FROM (
    SELECT currency, count(*) AS invoices, sum(amount_minor) AS amount_minor,
        count(*) FILTER (WHERE due_on < (now() AT TIME ZONE 'UTC')::date) AS overdue
    FROM example.invoices WHERE status = 'open'
    GROUP BY currency
) AS invoiced
"""

# Uses the index sessions_expiry.
LIVE_SESSIONS = "SELECT to_jsonb(count(*)) FROM example.sessions WHERE expires_at > now()"

COMPUTED = {
    "dashboard:live_sessions": Computed(LIVE_SESSIONS, timedelta(minutes=5)),
    "dashboard:open_invoices": Computed(OPEN_INVOICES, timedelta(hours=1)),
    "dashboard:sales_today": Computed(SALES_TODAY, timedelta(minutes=15)),
}

# Uses the index cache_entries_expiry, in batches; it skips rows that another cleanup or a refresh has locked.
DELETE_OLD = """
WITH gone AS (
    DELETE FROM example.cache_entries WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM example.cache_entries WHERE expires_at < %(before)s
        ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ))
    RETURNING name
)
SELECT count(*) FROM gone
"""

COUNT_OLD = """
SELECT count(*) FROM (
    SELECT FROM example.cache_entries WHERE expires_at < %(before)s ORDER BY expires_at LIMIT %(most)s
) AS old
"""


@dataclass(frozen=True)
class CacheEntry:
    """A named value, when it was computed, and when it expires."""

    name: str
    value: Any
    refreshed_at: datetime
    expires_at: datetime


def refresh(connection: Connection, name: str) -> CacheEntry:
    """Compute the named value and store it; raise CacheNameUnknown for any other name."""
    if name not in COMPUTED:
        raise CacheNameUnknown(name, tuple(COMPUTED))
    row = fetch_one(connection, refresh_statement(name), {"name": name, "holds": COMPUTED[name].holds})
    assert row is not None
    return CacheEntry(**row)


def refresh_statement(name: str) -> str:
    """Return the statement that computes and stores the named value."""
    return f"""
INSERT INTO example.cache_entries (name, value, expires_at)
VALUES (%(name)s, ({COMPUTED[name].sql}), now() + %(holds)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, refreshed_at = now(), expires_at = excluded.expires_at
RETURNING name, value, refreshed_at, expires_at
"""


def delete_old_cache_entries(connection: Connection, before: datetime, limit: int) -> int:
    """Delete a batch of entries that expired before this time; return how many: fewer than limit if none are left."""
    deleted: int = fetch_value(connection, DELETE_OLD, {"before": before, "limit": limit})
    return deleted


def count_old_cache_entries(connection: Connection, before: datetime, most: int) -> int:
    """Return how many entries there are to delete, counting up to `most`."""
    counted: int = fetch_value(connection, COUNT_OLD, {"before": before, "most": most})
    return counted
