"""Delete sessions that have expired."""

from __future__ import annotations

from datetime import datetime

from rowcall_example.sql import Connection, fetch_value

# Uses the index sessions_expiry, in batches; it skips rows that another cleanup has locked.
DELETE_EXPIRED = """
WITH gone AS (
    DELETE FROM example.sessions WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM example.sessions WHERE expires_at < %(before)s
        ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) FROM gone
"""

COUNT_EXPIRED = """
SELECT count(*) FROM (
    SELECT FROM example.sessions WHERE expires_at < %(before)s ORDER BY expires_at LIMIT %(most)s
) AS expired
"""


def delete_expired_sessions(connection: Connection, before: datetime, limit: int) -> int:
    """Delete a batch of sessions that expired before this time; return how many: fewer than limit if none are left.

    The weekly report counts sessions that still exist, so `before` decides what it can count.
    """
    deleted: int = fetch_value(connection, DELETE_EXPIRED, {"before": before, "limit": limit})
    return deleted


def count_expired_sessions(connection: Connection, before: datetime, most: int) -> int:
    """Return how many sessions there are to delete, counting up to `most`."""
    counted: int = fetch_value(connection, COUNT_EXPIRED, {"before": before, "most": most})
    return counted
