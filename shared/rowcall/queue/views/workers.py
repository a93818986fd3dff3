"""Workers, and what each of them does now.

Running runs are near the head of their lane, so they are found among the first SCANNED_MOST due runs of each lane,
as in the statistics: the cost depends neither on finished runs nor on how long a queue is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors, pages
from rowcall.queue.views.live_workers import ALIVE
from rowcall.queue.views.pages import Order
from rowcall.queue.views.stats import LANE, SCANNED_MOST
from rowcall.queue.workers import silence
from rowcall.status import Status

# The runs that are shown of one worker; it may have claimed hundreds of short ones.
RUNS_MOST = 20


# The running runs among the heads of `lanes`, each with its place among those of its holder, the longest running first.
RUNNING = f"""
    SELECT head.*, row_number() OVER (PARTITION BY locked_by ORDER BY started_at, id) AS nth
    FROM lanes CROSS JOIN LATERAL (
        SELECT id, job_type, queue, attempts, started_at, progress, status, locked_by, locked_until, updated_at
        {LANE} AND run_at <= now() ORDER BY run_at, id LIMIT {SCANNED_MOST}
    ) AS head WHERE status = '{Status.RUNNING}'"""

# The first of the runs of one holder.
RUNS = f"""jsonb_agg(jsonb_build_object(
        'run_id', id, 'job_type', job_type, 'queue', queue, 'attempt', attempts, 'started_at', started_at,
        'progress', CASE WHEN progress ? 'share' THEN jsonb_build_object(
            'share', progress -> 'share', 'note', coalesce(progress ->> 'note', '')) END
    ) ORDER BY nth) FILTER (WHERE nth <= {RUNS_MOST})"""


def workers_sql(order: Order) -> str:
    """Return the query for a page of workers and their runs; the table has the workers of about one day."""
    by_start = f"started_at {order.way}, id {order.way}"
    return f"""
WITH RECURSIVE {LANES}, page AS (
    SELECT id, hostname, pid, version, queues, job_types, concurrency, started_at, heartbeat_at, stopped_at,
        heartbeat_seconds,
        extract(epoch FROM now() - heartbeat_at)::float8 AS heartbeat_age_seconds,
        {ALIVE} AS alive,
        sleeps_until
    FROM rowcall.workers
    WHERE heartbeat_at > now() - interval '1 day' AND (started_at, id) {order.past} (%(at)s::timestamptz, %(id)s)
        AND (%(stopped)s OR stopped_at IS NULL AND heartbeat_at > now() - %(silence)s * interval '1 second')
    ORDER BY {by_start} LIMIT %(limit)s + 1
), run AS ({RUNNING} AND locked_by IN (SELECT id FROM page)
), doing AS (
    SELECT locked_by, count(*) AS running, {RUNS} AS runs FROM run GROUP BY locked_by
), shown AS (
    SELECT page.*, coalesce(doing.running, 0) AS running, coalesce(doing.runs, '[]') AS runs,
        doing.running IS NULL AND coalesce(sleeps_until > now(), false) AS sleeping
    FROM page LEFT JOIN doing ON doing.locked_by = page.id
), measured AS ({pages.measured(by_start)}
)
SELECT * FROM measured WHERE place <= %(limit)s AND {pages.FITS} ORDER BY {by_start}
"""


WORKERS = {order: workers_sql(order) for order in Order}


@dataclass(frozen=True)
class WorkersPage:
    """Some workers, and the cursor of the next page; None if there are no more."""

    workers: list[Row]
    next: str | None


def list_workers(
    connection: Connection,
    limit: int = 50,
    cursor: str | None = None,
    *,
    heartbeat: float,
    stopped: bool = False,
    page_bytes: int = pages.PAGE_BYTES,
    order: Order = Order.DESC,
) -> WorkersPage:
    """Return the workers in the order of their start, each with its running runs, the longest running first.

    Without `stopped`, leave out those that have stopped, and those that have been silent for so long that they are
    gone.  `heartbeat` is the interval at which workers with older code send heartbeats.
    """
    scope = order.scope(f"workers {stopped}")
    beginning = ("infinity" if order is Order.DESC else "-infinity", "")
    at, worker = beginning if cursor is None else _place(cursors.read_text(scope, cursor))
    asked = {
        "at": at,
        "id": worker,
        "stopped": stopped,
        "heartbeat": heartbeat,
        "silence": silence(heartbeat),
        "limit": limit,
        "page_bytes": page_bytes,
    }
    items, more = pages.read(fetch_all(connection, BY_INDEX + WORKERS[order], asked), frozenset({"sleeps_until"}))
    date_runs(items)
    last = f"{items[-1]['started_at'].isoformat()} {items[-1]['id']}" if more else ""
    return WorkersPage(items, cursors.written_text(scope, last) if more else None)


def date_runs(items: list[Row]) -> None:
    """Turn the texts of times in the runs of these rows into times."""
    for run in (run for item in items for run in item["runs"]):
        run["started_at"] = datetime.fromisoformat(run["started_at"])


def _place(text: str) -> tuple[datetime, str]:
    at, _, worker = text.partition(" ")
    try:
        return datetime.fromisoformat(at), worker
    except ValueError:
        raise cursors.not_a_cursor() from None
