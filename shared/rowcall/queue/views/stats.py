"""Stats: counts of waiting, running and failed runs, which cost the same for any backlog.

Each count reads an index, up to COUNTED_MOST entries, or EXAMINED_MOST.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from rowcall.base.database import Connection, Row, fetch_all, fetch_one
from rowcall.base.errors import QueueNotFound
from rowcall.queue.claims.lanes import LANES, every_lane
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import UNBEGUN
from rowcall.queue.queues import COUNTED_MOST
from rowcall.queue.views import pages
from rowcall.queue.views.live_workers import LIVE_WORKERS
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall.status import FAILURES, Event, Status, sources_of, sql_list

# Running runs are near the head of their lane, so they are counted among this many of its first runs.
SCANNED_MOST = 2 * COUNTED_MOST

LANE = "FROM rowcall.job_runs AS run WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority"


def queues_sql(lanes: str, among: str = "true") -> str:
    """Return a query for the queues of these lanes: settings and counts.

    It scans each lane's range of job_runs_live three times: for runs that could be claimed now, that are
    running, and that are due later.  A run that was handed over and not begun is running, and due since run_at.
    """
    return f"""
WITH RECURSIVE {lanes}, found AS (
    SELECT lanes.queue, run.status, run.due_since FROM lanes CROSS JOIN LATERAL (
        (SELECT status, run_at AS due_since {LANE} AND run_at <= now() AND status IN {sources_of(Event.CLAIM)}
         ORDER BY run_at, id LIMIT {COUNTED_MOST})
        UNION ALL
        (SELECT status, CASE WHEN {UNBEGUN} THEN run_at END FROM (
            SELECT status, locked_by, run_at {LANE} AND run_at <= now() ORDER BY run_at, id LIMIT {SCANNED_MOST}
         ) AS run WHERE status = '{Status.RUNNING}')
        UNION ALL
        (SELECT status, NULL {LANE} AND run_at > now() ORDER BY run_at, id LIMIT {COUNTED_MOST})
    ) AS run
), live AS (
    SELECT queue, min(due_since) AS due_since,
        count(due_since) FILTER (WHERE status IN {sources_of(Event.CLAIM)}) AS due,
        count(due_since) FILTER (WHERE status = '{Status.RUNNING}') AS handed_over,
        count(*) FILTER (WHERE status = '{Status.QUEUED}') AS queued,
        count(*) FILTER (WHERE status = '{Status.RUNNING}') AS running,
        count(*) FILTER (WHERE status = '{Status.FAILED}') AS failed
    FROM found GROUP BY queue
), named AS (
    SELECT queue AS name FROM live UNION SELECT name FROM rowcall.queues UNION SELECT unnest(%(known)s::text[])
)
SELECT named.name, queues.name IS NOT NULL OR named.name = ANY(%(known)s::text[]) AS made, queues.paused_at,
    least(queues.max_running, (%(declared)s::jsonb ->> named.name)::integer) AS max_running,
    queues.max_running AS operator_limit, (%(declared)s::jsonb ->> named.name)::integer AS declared_limit,
    least(coalesce(live.due, 0), {COUNTED_MOST})::integer AS due,
    coalesce(extract(epoch FROM now() - live.due_since), 0)::float8 AS oldest_due_age_seconds,
    least(coalesce(live.queued, 0), {COUNTED_MOST})::integer AS queued,
    least(coalesce(live.running, 0), {COUNTED_MOST})::integer AS running,
    least(coalesce(live.handed_over, 0), {COUNTED_MOST})::integer AS handed_over,
    least(coalesce(live.failed, 0), {COUNTED_MOST})::integer AS failed
FROM named LEFT JOIN live ON live.queue = named.name LEFT JOIN rowcall.queues ON queues.name = named.name
WHERE {among}
ORDER BY named.name
"""


# A queue without live runs has a row too if it has settings or a job type.
QUEUES = queues_sql(LANES)

# The same for one queue, from its lanes only.
QUEUE = queues_sql(every_lane("AND queue = %(queue)s"), "named.name = %(queue)s")

# Uses the indexes job_attempts_failed, job_definitions_paused and job_definitions_due; workers has the rows of one day.
AROUND = f"""
SELECT now() AS at,
    (SELECT count(*) FROM (
        SELECT FROM rowcall.job_attempts
        WHERE ended_at > now() - interval '1 hour' AND outcome IN {sql_list(FAILURES)} LIMIT {COUNTED_MOST}
    ) AS lately) AS attempts_failed_last_hour,
    ({LIVE_WORKERS}) AS workers_alive,
    (SELECT count(*) FROM (
        SELECT FROM rowcall.job_definitions WHERE paused_at IS NOT NULL LIMIT {COUNTED_MOST}
    ) AS paused) AS definitions_paused,
    (SELECT count(*) FROM (
        SELECT FROM rowcall.job_definitions WHERE next_run_at < now() - interval '{SILENCE_SECONDS} seconds'
        LIMIT {COUNTED_MOST}
    ) AS overdue) AS definitions_overdue
"""

# How many failed attempts are examined for those that ended as dead, so that it costs the same for any number of them.
EXAMINED_MOST = 20_000

# Uses job_attempts_failed, for the latest attempts of a day.  A run that was retried since, or succeeded, is not dead.
# OFFSET 0, so that each run is read by its primary key: a hash join would read all runs.
DEAD_LATELY = f"""
SELECT run.job_type, count(DISTINCT run.id)::integer AS runs FROM (
    SELECT run_id, outcome FROM rowcall.job_attempts
    WHERE ended_at > now() - interval '1 day' AND outcome IN {sql_list(FAILURES)}
    ORDER BY ended_at DESC LIMIT {EXAMINED_MOST}
) AS lately CROSS JOIN LATERAL (
    SELECT id, job_type, status FROM rowcall.job_runs WHERE id = lately.run_id OFFSET 0
) AS run
WHERE lately.outcome <> '{Event.FAIL}' AND run.status = '{Status.DEAD}'
GROUP BY run.job_type ORDER BY runs DESC, run.job_type
"""


# The first runs of each lane of the queue that are due and that nobody performs, from job_runs_live: the cost does not
# grow with the backlog.
LONGEST_DUE = f"""
WITH RECURSIVE {every_lane("AND queue = %(queue)s")}, due AS MATERIALIZED (
    SELECT run.* FROM lanes CROSS JOIN LATERAL (
        SELECT id, job_type, run_at {LANE} AND run_at <= now()
            AND (status IN {sources_of(Event.CLAIM)} OR {UNBEGUN})
        ORDER BY run_at, id LIMIT {COUNTED_MOST}
    ) AS run
), first AS (
    SELECT id, job_type, run_at FROM due ORDER BY run_at, id LIMIT 1
)
SELECT first.id, first.job_type, first.run_at, now() - first.run_at AS late,
    (SELECT least(count(*), {COUNTED_MOST})::integer FROM due WHERE due.job_type = first.job_type) AS runs
FROM first
"""


def dead_lately(connection: Connection) -> list[Row]:
    """Return how many runs of each job type died in the last day, among the latest EXAMINED_MOST failed attempts."""
    return fetch_all(connection, BY_INDEX + DEAD_LATELY)


def figures(connection: Connection, known: Iterable[str], declared: Mapping[str, int], heartbeat: float) -> Row:
    """Return the counts of waiting, running and failed runs, of live workers, and of definitions.

    `known` are queues to list even if they are empty; `declared` is as in ClaimRequest.  `heartbeat` is the
    interval at which workers with older code send heartbeats.
    """
    around = fetch_one(connection, BY_INDEX + AROUND, {"heartbeat": heartbeat})
    assert around is not None
    return {
        "at": around["at"],
        "attempts_failed_last_hour": around["attempts_failed_last_hour"],
        "runs_dead_last_day": min(sum(row["runs"] for row in dead_lately(connection)), COUNTED_MOST),
        "workers_alive": around["workers_alive"],
        "definitions": {"paused": around["definitions_paused"], "overdue": around["definitions_overdue"]},
        "queues": counted_queues(connection, known, declared),
    }


def counted_queues(connection: Connection, known: Iterable[str], declared: Mapping[str, int]) -> list[Row]:
    """Return every queue by name, with its settings and counts; the parameters are those of `figures`."""
    rules = {"known": list(known), "declared": json.dumps(dict(declared))}
    return fetch_all(connection, BY_INDEX + QUEUES, rules)


def queues_page(
    connection: Connection,
    known: Iterable[str],
    declared: Mapping[str, int],
    cursor: str | None = None,
    page_bytes: int = pages.PAGE_BYTES,
) -> tuple[list[Row], str | None]:
    """Return the queues after this cursor that fit on a page, and the cursor of the next page."""
    return pages.by_name("queues", counted_queues(connection, known, declared), cursor, page_bytes)


def counted_queue(connection: Connection, name: str, known: Iterable[str], declared: Mapping[str, int]) -> Row:
    """Return one queue with its settings and counts, or raise QueueNotFound."""
    rules = {"queue": name, "known": list(known), "declared": json.dumps(dict(declared))}
    row = fetch_one(connection, BY_INDEX + QUEUE, rules)
    if row is None:
        raise QueueNotFound(name)
    return row


def longest_due(connection: Connection, queue: str) -> Row | None:
    """Return the run of this queue that has been due longest, with the number of due runs of its type."""
    return fetch_one(connection, BY_INDEX + LONGEST_DUE, {"queue": queue})
