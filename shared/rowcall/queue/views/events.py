"""What has changed since the last read: the events of runs, workers and operations.

Each reader keeps in memory what it has seen, and compares it with what it reads next.  So nothing is lost when
transactions become visible in a different order from their times, and finished runs cost nothing.  An event is the
new status of a run; a status that lasts less than the time between two reads may be left out, but never the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from rowcall.base.database import Connection, Row, fetch_all, fetch_value
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.operations.state import OperationStatus
from rowcall.queue.views.live_workers import ALIVE
from rowcall.queue.views.stats import LANE, SCANNED_MOST
from rowcall.status import FAILURES, Status, sql_list

# With more live runs than this, only the running ones are compared.
LIVE_MOST = 5000

# Runs and failures of this last period are read again each time, because their transactions may commit late.
WINDOW = "interval '10 seconds'"
NEWEST_MOST = 2000

NOW = "SELECT now()"

# All live runs, in the order of job_runs_live.
LIVE = """
SELECT id, job_type, queue, status, lease_no, attempts, updated_at FROM rowcall.job_runs
WHERE finished_at IS NULL ORDER BY queue, priority, run_at, id LIMIT %(limit)s
"""

# The running runs, which are near the head of their lanes.
RUNNING = f"""
WITH RECURSIVE {LANES}
SELECT head.* FROM lanes CROSS JOIN LATERAL (
    SELECT id, job_type, queue, status, lease_no, attempts, updated_at {LANE} AND run_at <= now()
    ORDER BY run_at, id LIMIT {SCANNED_MOST}
) AS head WHERE status = '{Status.RUNNING}'
"""

# The newest runs, the runs that failed lately, and those that are no longer live.  Uses the primary key and
# job_attempts_failed.
CHANGED = f"""
SELECT id, job_type, queue, status, lease_no, attempts, updated_at FROM rowcall.job_runs
WHERE id = ANY(ARRAY(
    SELECT id FROM (SELECT id, created_at FROM rowcall.job_runs ORDER BY id DESC LIMIT {NEWEST_MOST}) AS newest
    WHERE created_at > now() - {WINDOW}
    UNION
    (SELECT run_id FROM rowcall.job_attempts WHERE outcome IN {sql_list(FAILURES)} AND ended_at > now() - {WINDOW}
     ORDER BY ended_at DESC LIMIT {NEWEST_MOST})
    UNION
    SELECT unnest(%(gone)s::bigint[])
))
ORDER BY updated_at, id
"""

# The table has the workers of about one day.
LIVE_WORKERS = f"SELECT id FROM rowcall.workers WHERE {ALIVE}"

# The operations that have not ended, the newest ones, and those that have ended since the last read.
OPERATIONS = """
SELECT id, action, status, matched, changed, refused, updated_at FROM rowcall.operations
WHERE id = ANY(ARRAY(
    (SELECT id FROM rowcall.operations WHERE finished_at IS NULL ORDER BY id DESC LIMIT 1000)
    UNION
    (SELECT id FROM rowcall.operations ORDER BY id DESC LIMIT 100)
    UNION
    SELECT unnest(%(gone)s::bigint[])
))
ORDER BY updated_at, id
"""


class Event(NamedTuple):
    """Something that has happened: its kind, and its data for JSON."""

    kind: str
    data: Mapping[str, Any]


# What a client has may be out of date: it must read the lists again.
RESET = Event("reset", {})


class RunEvents:
    """The changes of runs since the last read."""

    def __init__(self, live_most: int = LIVE_MOST) -> None:
        self._live_most = live_most
        self._live: set[int] = set()
        self._known: dict[int, tuple[str, int]] | None = None
        self._partial = False

    def read(self, connection: Connection) -> list[Event]:
        """Return what has changed; nothing at the first read."""
        live = fetch_all(connection, BY_INDEX + LIVE, {"limit": self._live_most + 1})
        partial = len(live) > self._live_most
        if partial:
            live = fetch_all(connection, BY_INDEX + RUNNING)
        ids = {row["id"] for row in live}
        changed = fetch_all(connection, BY_INDEX + CHANGED, {"gone": sorted(self._live - ids)})
        rows = {row["id"]: row for row in (*live, *changed)}
        known = self._known
        # Runs that waited while only running ones were compared are not new.
        resumed, begins = self._partial and not partial, partial and not self._partial
        self._live, self._partial = ids, partial
        self._known = {run_id: (row["status"], row["lease_no"]) for run_id, row in rows.items()}
        if known is None:
            return []
        if resumed:
            return [RESET]
        new = [row for run_id, row in rows.items() if known.get(run_id) != self._known[run_id]]
        events = [_run_event(row) for row in sorted(new, key=itemgetter("updated_at", "id"))]
        return [Event("partial", {}), *events] if begins else events


def _run_event(row: Row) -> Event:
    named = ("id", "job_type", "queue", "status", "attempts")
    return Event("run", {**{name: row[name] for name in named}, "at": row["updated_at"].isoformat()})


class WorkerEvents:
    """The workers that have started or gone since the last read."""

    def __init__(self, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._known: set[str] | None = None

    def read(self, connection: Connection) -> list[Event]:
        """Return what has changed; nothing at the first read."""
        alive = {row["id"] for row in fetch_all(connection, LIVE_WORKERS, {"heartbeat": self._heartbeat})}
        known, self._known = self._known, alive
        if known is None:
            return []
        changes = ((alive - known, "started"), (known - alive, "gone"))
        return [Event("worker", {"id": worker, "state": state}) for ids, state in changes for worker in sorted(ids)]


class OperationEvents:
    """The operations that have started, progressed or ended since the last read."""

    def __init__(self) -> None:
        self._known: dict[int, Row] | None = None

    def read(self, connection: Connection) -> list[Event]:
        """Return what has changed; nothing at the first read."""
        known = self._known or {}
        gone = [operation_id for operation_id, row in known.items() if row["status"] != OperationStatus.FINISHED]
        rows = fetch_all(connection, BY_INDEX + OPERATIONS, {"gone": gone})
        first, self._known = self._known is None, {row["id"]: row for row in rows}
        if first:
            return []
        return [_operation_event(row) for row in rows if known.get(row["id"]) != row]


def _operation_event(row: Row) -> Event:
    named = ("id", "action", "status", "matched", "changed", "refused")
    return Event("operation", {**{name: row[name] for name in named}, "at": row["updated_at"].isoformat()})


def now(connection: Connection) -> datetime:
    """Return the time at which the transaction began: what was committed before it is visible to its reads."""
    moment: datetime = fetch_value(connection, NOW)
    return moment
