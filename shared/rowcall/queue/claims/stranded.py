"""Stranded runs: a claim took them, but the worker never received its result."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.claims.lanes import Lane, parameters_of_lanes
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import Lease
from rowcall.status import Event, sources_of

# The most runs to read in each lane.  A claim takes the first free runs, so they are near the position where it began.
WALKED_MOST = 5000

# This worker's leases on runs of the lanes from which it claimed, and on suspects.
HELD = f"""
SELECT run.id, run.lease_no FROM unnest(
    %(lane_queues)s::text[], %(lane_priorities)s::smallint[], %(lane_run_ats)s::timestamptz[], %(lane_ids)s::bigint[]
) AS known(queue, priority, run_at, id) CROSS JOIN LATERAL (
    SELECT id, lease_no, status, locked_by, suspect FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
        AND (run_at, id) >= (known.run_at, known.id)
    ORDER BY run_at, id LIMIT {WALKED_MOST}
) AS run
WHERE run.status IN {sources_of(Event.UNCLAIM)} AND run.locked_by = %(worker)s AND run.suspect = 0
UNION ALL
SELECT id, lease_no FROM rowcall.job_runs
WHERE finished_at IS NULL AND suspect > 0 AND status IN {sources_of(Event.UNCLAIM)} AND locked_by = %(worker)s
"""


def held(connection: PgConnection, worker: str, lanes: Sequence[Lane]) -> list[Lease]:
    """Return the leases that a worker holds on suspects, and on runs of these lanes from each lane's start."""
    rows = fetch_prepared(connection, BY_INDEX + HELD, {"worker": worker, **parameters_of_lanes(lanes)})
    return [Lease(worker, run_id, lease_no) for run_id, lease_no in rows]
