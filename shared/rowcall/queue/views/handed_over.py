"""Runs that were handed over: the messages that wait for a consumer, and the consumers that perform runs.

Only the runs say so, because a consumer has no row of its own: one that performs nothing is not seen.  They are found
as those of workers are, among the heads of lanes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.claims.holders import process_of, task_of
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import CONSUMER, MESSAGE
from rowcall.queue.views import pages
from rowcall.queue.views.live_workers import MISSED_INTERVALS
from rowcall.queue.views.stats import SCANNED_MOST
from rowcall.queue.views.workers import RUNNING, RUNS, date_runs

# A broker's queues and tasks are few; with hundreds of consumers, the silent ones are shown.
HOLDERS_MOST = 200

# Messages first, then silent consumers, then by name.
BY_NAME = "waits DESC, alive, id"

# One row for each queue and task of the broker, and one for each consumer.  A consumer's heartbeat renews all of its
# leases at once, and changes updated_at.  It comes every third of the shortest lease, but at least at the interval of
# the settings.  updated_at also changes if a handler reports progress, and then the lease seems shorter: a consumer
# counts as silent a little earlier, but never before its next heartbeat is late, and always after its leases.
HANDED_OVER = f"""
WITH RECURSIVE {LANES}, run AS ({RUNNING}
        AND (starts_with(locked_by, '{MESSAGE}') OR starts_with(locked_by, '{CONSUMER}'))
), holder AS (
    SELECT locked_by AS id, starts_with(locked_by, '{MESSAGE}') AS waits, count(*) AS running, {RUNS} AS runs,
        max(updated_at) AS heartbeat_at, max(locked_until) AS locked_until,
        least(%(heartbeat)s, extract(epoch FROM min(locked_until - updated_at)) / 3)::float8 AS heartbeat_seconds
    FROM run GROUP BY locked_by
), shown AS (
    SELECT holder.*, extract(epoch FROM now() - heartbeat_at)::float8 AS heartbeat_age_seconds,
        heartbeat_at > now() - {MISSED_INTERVALS} * heartbeat_seconds * interval '1 second' AS alive
    FROM holder
), measured AS ({pages.measured(BY_NAME)}
)
SELECT * FROM measured WHERE place <= {HOLDERS_MOST} AND {pages.FITS} ORDER BY {BY_NAME}
"""


@dataclass(frozen=True)
class HandedOver:
    """The messages that wait, the longest waiting first, the consumers that perform runs, and whether more may exist.

    Each row of `waiting` is for one queue and task of the broker.
    """

    waiting: list[Row]
    consumers: list[Row]
    more: bool

    def __bool__(self) -> bool:
        """Whether any run is handed over."""
        return bool(self.waiting or self.consumers)


def list_handed_over(connection: Connection, *, heartbeat: float, page_bytes: int = pages.PAGE_BYTES) -> HandedOver:
    """Return where runs were handed over; `heartbeat` is the longest interval of a consumer's heartbeats."""
    asked = {"heartbeat": heartbeat, "page_bytes": page_bytes}
    rows, more = pages.read(fetch_all(connection, BY_INDEX + HANDED_OVER, asked))
    date_runs(rows)
    waiting = [_waiting(row) for row in rows if row["waits"]]
    consumers = [_consumer(row) for row in rows if not row["waits"]]
    more = more or sum(row["running"] for row in rows) >= SCANNED_MOST
    return HandedOver(sorted(waiting, key=lambda row: row["waiting_since"]), consumers, more)


def _waiting(row: Row) -> Row:
    first = row["runs"][0]
    found = {"waiting": row["running"], "waiting_since": first["started_at"], "run_id": first["run_id"]}
    return {**task_of(row["id"])._asdict(), **found}


def _consumer(row: Row) -> Row:
    return {
        "id": row["id"],
        **process_of(row["id"])._asdict(),
        **{name: value for name, value in row.items() if name not in ("id", "waits")},
    }
