"""Claim from queues with a limit; suspects are claimed in the same way."""

from __future__ import annotations

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.claims.claim import ANSWER, CLAIMED, CLAIMED_COLUMNS, EXPIRED_RUNS
from rowcall.queue.claims.lanes import CLAIMABLE, KNOWN_LANES, LEASE_IS_OVER, TAKEN
from rowcall.queue.claims.request import ClaimRequest, ClaimResult, with_lanes
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import END_LEASES
from rowcall.queue.queues import make_queues
from rowcall.status import Event, Status, sources_of


def claim_limited_sql(
    lanes: str = KNOWN_LANES,
    lane_start: str = "lanes_with_room.run_at, lanes_with_room.id",
    claimable: str = CLAIMABLE,
    every_queue: str = "",
    order: str = "turn, priority, run_at, id",
    waiting: str = "NULL",
) -> str:
    """Return the claim from queues with a limit, or the claim of suspects.

    The statement locks the queues with a limit, counts their running runs, locks as many due rows as there is room for,
    and claims them.

    lanes, due_lanes  As in CLAIM.
    open_queues       The rows of the queues with a limit, locked so that two claims cannot both fill the last place.  A
                      row that another claim has locked is skipped.  So is a row that has changed since this statement
                      began (`before` is its old version), because the runs just claimed under it are not visible yet.
                      Both count as contended: look again at once.
    holders           The running runs of these queues.  queues.holders contains every run that was claimed from the
                      queue and may still run; the runs themselves, found by primary key, say which do.  A run that has
                      ended in any way frees its place, so no place can leak.
    over              The holders whose lease has expired.  They are ended here; the next claim can use their places.
    lanes_with_room   The lanes, with the number of runs that their queue has room for.  With `every_queue`, also those
                      of queues without a limit, which have room for the whole request.
    ranked            All priorities of a queue share its room, so rows are counted over its lanes before any is
                      claimed.  Queues are in the order in which the worker visits them.
    noted             Sets the holders to the runs that are still running and those that start now.
    answer            As in CLAIM; the last row says whether the claim was contended, and what `waiting` reads.
    """
    return f"""
WITH RECURSIVE {lanes}, due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (%(declared)s::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (%(queues)s::text[] IS NULL OR lanes.queue = ANY(%(queues)s::text[]))
), open_queues AS MATERIALIZED (
    SELECT queues.name, queues.holders FROM rowcall.queues JOIN rowcall.queues AS before USING (name, holders)
    WHERE queues.name IN (SELECT queue FROM due_lanes WHERE max_running IS NOT NULL)
    FOR UPDATE OF queues SKIP LOCKED
), holders AS MATERIALIZED (
    SELECT open_queues.name, run.id, run.locked_by
    FROM open_queues CROSS JOIN LATERAL unnest(open_queues.holders) AS holder(run_id)
    JOIN rowcall.job_runs AS run ON run.id = holder.run_id AND run.status = '{Status.RUNNING}'
), over AS MATERIALIZED (
    SELECT ctid AS place, id, queue, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT id FROM holders)) AND {LEASE_IS_OVER}
    FOR UPDATE SKIP LOCKED
), lanes_with_room AS (
    SELECT due_lanes.*, least(%(limit)s,
        due_lanes.max_running - (SELECT count(*) FROM holders WHERE holders.name = due_lanes.queue)) AS room
    FROM due_lanes LEFT JOIN open_queues ON open_queues.name = due_lanes.queue
    WHERE open_queues.name IS NOT NULL {every_queue}
), due AS MATERIALIZED (
    SELECT found.*, lanes_with_room.room FROM lanes_with_room CROSS JOIN LATERAL (
        SELECT ctid AS place, id, queue, status, locked_by AS worker, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes_with_room.queue AND priority = lanes_with_room.priority
            AND run_at <= now() AND (run_at, id) >= ({lane_start}) AND {claimable}
        ORDER BY run_at, id
        LIMIT greatest(lanes_with_room.room, 0) FOR UPDATE SKIP LOCKED
    ) AS found
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY queue ORDER BY priority, run_at, id) AS position,
        array_position(%(lane_queues)s::text[], queue) AS turn
    FROM due
), seen AS MATERIALIZED (
    SELECT place, id, queue, status, worker FROM over
    UNION ALL
    (SELECT place, id, queue, status, worker FROM ranked WHERE position <= room
     ORDER BY {order} LIMIT %(limit)s)
), {END_LEASES}, claimed AS (
    UPDATE rowcall.job_runs AS run SET {CLAIMED}
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN {sources_of(Event.CLAIM)}))
    RETURNING {CLAIMED_COLUMNS}
), noted AS (
    UPDATE rowcall.queues SET holders = ARRAY(
        SELECT holders.id FROM holders WHERE holders.name = queues.name AND holders.id NOT IN (SELECT id FROM over)
        UNION ALL
        SELECT seen.id FROM seen WHERE seen.queue = queues.name AND seen.id NOT IN (SELECT id FROM over)
    )
    FROM open_queues WHERE queues.name = open_queues.name
), answer AS (
    SELECT * FROM claimed ORDER BY priority, run_at, id
)
SELECT {ANSWER} FROM answer
UNION ALL
SELECT NULL, NULL, NULL, jsonb_build_object(
    'expired', {EXPIRED_RUNS}, 'taken', {TAKEN}, 'waiting', {waiting}, 'contended',
    EXISTS (SELECT FROM due_lanes WHERE max_running > 0 AND queue NOT IN (SELECT name FROM open_queues))
), NULL, NULL, NULL, NULL, NULL
"""


CLAIM_LIMITED = claim_limited_sql()


def claim_limited(connection: PgConnection, worker: str, request: ClaimRequest) -> ClaimResult:
    """Claim due runs of queues with a limit."""
    parameters = with_lanes(connection, request).parameters(worker)
    result = ClaimResult.of(fetch_prepared(connection, BY_INDEX + CLAIM_LIMITED, parameters))
    if result.contended and request.declared:
        # Perhaps a row is missing, because an operator has removed the settings of a queue that has a declared limit.
        make_queues(connection, list(request.declared))
    return result
