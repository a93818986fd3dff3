"""Claim from queues in which only so many runs may run at a time."""

from __future__ import annotations

from rowcall.base.database import PgConnection, fetch_tuples
from rowcall.queue.claim import (
    CLAIMABLE,
    DUE_LANES,
    LANES,
    LEASE_IS_OVER,
    TAKEN,
    ClaimRequest,
    ClaimResult,
    answer,
    claim_result,
)
from rowcall.queue.finish import BY_INDEX
from rowcall.status import Status

# Reads as: take the limited queues for this moment, count who runs in them, meet as many due rows as there is room.
#
# mine     The queue's row, locked, so that two claims cannot both fill the last place.  A row that another claim holds
#          is skipped; one that changed since this statement began is not believed either (`seen` is how it was then),
#          because the runs just claimed under it cannot be seen yet.  Both count as contended: look again at once.
# held     queues.holders names every run that was claimed from the queue and may still run.  Who really does is read
#          from the runs themselves, by primary key: however a run ended, its place is free, so none can leak.
# over     Of those, the leases that ran out.  They are ended here, and give their place to the next claim.
# ranked   All priorities of a queue share its room, so the rows are counted over its lanes before they are taken.
# noted    The holders are those who still run and those who begin.
CLAIM_LIMITED = f"""
WITH RECURSIVE {LANES}, {DUE_LANES}, mine AS MATERIALIZED (
    SELECT queues.name, queues.holders FROM rowcall.queues JOIN rowcall.queues AS seen USING (name, holders)
    WHERE queues.name IN (SELECT queue FROM due_lanes WHERE max_running IS NOT NULL)
    FOR UPDATE OF queues SKIP LOCKED
), held AS MATERIALIZED (
    SELECT mine.name, run.id FROM mine CROSS JOIN LATERAL unnest(mine.holders) AS holder(run_id)
    JOIN rowcall.job_runs AS run ON run.id = holder.run_id AND run.status = '{Status.RUNNING}'
), over AS MATERIALIZED (
    SELECT ctid AS place, id, queue, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT id FROM held)) AND {LEASE_IS_OVER}
    FOR UPDATE SKIP LOCKED
), lanes_with_room AS (
    SELECT due_lanes.queue, due_lanes.priority,
        due_lanes.max_running - (SELECT count(*) FROM held WHERE held.name = due_lanes.queue) AS room
    FROM due_lanes JOIN mine ON mine.name = due_lanes.queue
), due AS MATERIALIZED (
    SELECT found.*, lanes_with_room.room FROM lanes_with_room CROSS JOIN LATERAL (
        SELECT ctid AS place, id, queue, status, locked_by AS worker, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes_with_room.queue AND priority = lanes_with_room.priority
            AND run_at <= now() AND {CLAIMABLE}
        ORDER BY run_at, id
        LIMIT greatest(least(lanes_with_room.room, %(limit)s), 0) FOR UPDATE SKIP LOCKED
    ) AS found
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY queue ORDER BY priority, run_at, id) AS position FROM due
), met AS MATERIALIZED (
    SELECT place, id, queue, status, worker FROM over
    UNION ALL
    (SELECT place, id, queue, status, worker FROM ranked WHERE position <= room
     ORDER BY priority, run_at, id LIMIT %(limit)s)
), {TAKEN}, noted AS (
    UPDATE rowcall.queues SET holders = ARRAY(
        SELECT held.id FROM held WHERE held.name = queues.name AND held.id NOT IN (SELECT id FROM over)
        UNION ALL
        SELECT met.id FROM met WHERE met.queue = queues.name AND met.id NOT IN (SELECT id FROM over)
    )
    FROM mine WHERE queues.name = mine.name
)
{answer("NULL", "EXISTS (SELECT FROM due_lanes WHERE max_running > 0 AND queue NOT IN (SELECT name FROM mine))::text")}
"""


def claim_limited(connection: PgConnection, worker: str, wanted: ClaimRequest) -> tuple[ClaimResult, bool]:
    """Take due runs of queues with a limit; true beside them when another claim was in the way: look again at once."""
    *rows, (*_, contended) = fetch_tuples(connection, BY_INDEX + CLAIM_LIMITED, wanted.parameters(worker))
    return claim_result(rows), contended == "true"
