"""Sleepers: idle workers that wait for a notification.  Enqueue notifies only if one of them serves the run.

PostgreSQL makes transactions that send NOTIFY commit one at a time.  docs/claim.md explains why no run is missed.
"""

from __future__ import annotations

from rowcall.base.database import PgConnection, fetch_all, fetch_value

# rowcall.wake reads sleeps_until.  A worker that died asleep counts until that time; a live one extends it with each
# heartbeat.  Neither statement waits for the row: if it is locked, the worker polls, or is notified without need.
FALL_ASLEEP = """
UPDATE rowcall.workers SET sleeps_until = now() + %(seconds)s * interval '1 second'
WHERE id = (SELECT id FROM rowcall.workers WHERE id = %(worker)s FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id
"""

AWAKE = """
UPDATE rowcall.workers SET sleeps_until = NULL
WHERE id = (SELECT id FROM rowcall.workers WHERE id = %(worker)s FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id
"""

# A transaction with this number or a higher one, or without one yet, sees which workers sleep now.
NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"

# Earlier transactions may not see that the worker sleeps: wait until all of them have ended.
HAVE_ENDED = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= %(transaction)s::bigint"


def fall_asleep(connection: PgConnection, worker: str, seconds: float) -> int | None:
    """Record that this worker sleeps; return the first transaction that sees it, or None if the row is locked."""
    if not fetch_all(connection, FALL_ASLEEP, {"worker": worker, "seconds": seconds}):
        return None
    transaction: int = fetch_value(connection, NEXT_TRANSACTION)
    return transaction


def have_ended(connection: PgConnection, transaction: int) -> bool:
    """Return whether all transactions before this one have ended, so that the runs that they made due are visible."""
    return bool(fetch_value(connection, HAVE_ENDED, {"transaction": transaction}))


def awake(connection: PgConnection, worker: str) -> bool:
    """Record that this worker need not be notified; return False if its row is locked."""
    return bool(fetch_all(connection, AWAKE, {"worker": worker}))
