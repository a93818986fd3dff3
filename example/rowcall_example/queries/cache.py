"""Cache entries: values with a name, computed here in SQL, kept for a while, and cleaned away when they are old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rowcall_example.errors import CacheNameUnknown
from rowcall_example.sql import Connection, fetch_one, fetch_value


@dataclass(frozen=True)
class Computed:
    """How a named value comes about: one expression that is a jsonb, and how long the value holds."""

    sql: str
    holds: timedelta


# By orders_day: the day so far, in UTC.
SALES_TODAY = """
SELECT coalesce(jsonb_agg(to_jsonb(sales) ORDER BY currency), '[]') FROM (
    SELECT currency, count(*) AS orders, sum(amount_minor) AS amount_minor FROM example.orders
    WHERE ordered_at >= date_trunc('day', now(), 'UTC')
        AND ordered_at < date_trunc('day', now(), 'UTC') + interval '1 day'
    GROUP BY currency
) AS sales
"""

# All open invoices are what invoices_due holds.
OPEN_INVOICES = """
SELECT coalesce(jsonb_agg(to_jsonb(invoiced) ORDER BY currency), '[]') FROM (
    SELECT currency, count(*) AS invoices, sum(amount_minor) AS amount_minor,
        count(*) FILTER (WHERE due_on < (now() AT TIME ZONE 'UTC')::date) AS overdue
    FROM example.invoices WHERE status = 'open'
    GROUP BY currency
) AS invoiced
"""

# By sessions_expiry.
LIVE_SESSIONS = "SELECT to_jsonb(count(*)) FROM example.sessions WHERE expires_at > now()"

COMPUTED = {
    "dashboard:live_sessions": Computed(LIVE_SESSIONS, timedelta(minutes=5)),
    "dashboard:open_invoices": Computed(OPEN_INVOICES, timedelta(hours=1)),
    "dashboard:sales_today": Computed(SALES_TODAY, timedelta(minutes=15)),
}

# From the head of cache_entries_expiry, in batches; rows that another cleanup, or a refresh, has locked are left alone.
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
    """A named value, since when it stands, and until when it holds."""

    name: str
    value: Any
    refreshed_at: datetime
    expires_at: datetime


def refresh(connection: Connection, name: str) -> CacheEntry:
    """Compute the named value anew and store it; CacheNameUnknown names those there are."""
    if name not in COMPUTED:
        raise CacheNameUnknown(name, tuple(COMPUTED))
    row = fetch_one(connection, refresh_statement(name), {"name": name, "holds": COMPUTED[name].holds})
    assert row is not None
    return CacheEntry(**row)


def refresh_statement(name: str) -> str:
    """Compute and store in one statement."""
    return f"""
INSERT INTO example.cache_entries (name, value, expires_at)
VALUES (%(name)s, ({COMPUTED[name].sql}), now() + %(holds)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, refreshed_at = now(), expires_at = excluded.expires_at
RETURNING name, value, refreshed_at, expires_at
"""


def delete_old_cache_entries(connection: Connection, before: datetime, limit: int) -> int:
    """Delete a batch of those that expired before this moment: how many went; fewer than limit when none are left."""
    deleted: int = fetch_value(connection, DELETE_OLD, {"before": before, "limit": limit})
    return deleted


def count_old_cache_entries(connection: Connection, before: datetime, most: int) -> int:
    """How many there are to delete, counted no further than `most`."""
    counted: int = fetch_value(connection, COUNT_OLD, {"before": before, "most": most})
    return counted
