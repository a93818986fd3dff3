"""The run of a queue that has been due longest, and how many of its type are due with it."""

from __future__ import annotations

from rowcall.base.database import Connection, Row, fetch_one
from rowcall.queue.claims.lanes import every_lane
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.queues import COUNTED_MOST
from rowcall.queue.views.stats import LANE
from rowcall.status import Event, sources_of

# The first due runs of each lane of the queue, from job_runs_live: the cost does not grow with the backlog.
LONGEST_DUE = f"""
WITH RECURSIVE {every_lane("AND queue = %(queue)s")}, due AS MATERIALIZED (
    SELECT run.* FROM lanes CROSS JOIN LATERAL (
        SELECT id, job_type, run_at {LANE} AND run_at <= now() AND status IN {sources_of(Event.CLAIM)}
        ORDER BY run_at, id LIMIT {COUNTED_MOST}
    ) AS run
), first AS (
    SELECT id, job_type, run_at FROM due ORDER BY run_at, id LIMIT 1
)
SELECT first.id, first.job_type, first.run_at, now() - first.run_at AS late,
    (SELECT least(count(*), {COUNTED_MOST})::integer FROM due WHERE due.job_type = first.job_type) AS runs
FROM first
"""


def longest_due(connection: Connection, queue: str) -> Row | None:
    """Return the run of this queue that has been due longest, with the number of due runs of its type."""
    return fetch_one(connection, BY_INDEX + LONGEST_DUE, {"queue": queue})
