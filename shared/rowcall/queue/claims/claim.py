"""Claim: take due runs, each under its own lease, and write the worker's successes in the same statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.claims.lanes import (
    CLAIMABLE,
    HEADS,
    KNOWN_LANES,
    LEASE_IS_OVER,
    TAKEN,
)
from rowcall.queue.claims.request import ClaimRequest, ClaimResult, Limited, with_lanes
from rowcall.queue.finish import SUCCEED, Done, done_parameters
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import END_LEASES
from rowcall.status import Event, Status, sources_of

# The runs that may be claimed ahead of a free slot.  A crash must not use up the only attempt of a waiting run.
AHEAD = "max_attempts > 1 AND job_type = ANY(%(quick_types)s::text[])"

# The number of next runs of a lane that decide whether to claim ahead from it.
PROBED = 20

# The changes to a claimed run.  The progress that the previous attempt reported is removed; a saved value stays.
CLAIMED = f"""
    status = '{Status.RUNNING}', attempts = run.attempts + 1, lease_no = run.lease_no + 1, locked_by = %(worker)s,
    locked_until = now() + (%(leases)s::jsonb ->> run.job_type)::float8 * interval '1 second',
    started_at = now(), updated_at = now(), progress = nullif(run.progress - '{{share,note}}'::text[], '{{}}')"""

CLAIMED_COLUMNS = """run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts,
        run.scheduled_for, run.suspect, run.queue, run.priority, run.run_at"""

# The fields of Claimed; the last one is how many seconds the run had been due.  An infinite run_at cannot be subtracted
# from a time.
ANSWER = """id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, suspect,
    least(date_part('epoch', now()) - date_part('epoch', run_at), 1e9)"""

# The runs whose lease expired, with their new status.
EXPIRED_RUNS = "(SELECT jsonb_object_agg(id, status) FROM expired)"

# The part of a claim that takes more runs than there are free slots.
FURTHER = f"""further AS MATERIALIZED (
    SELECT quick.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT avg(({AHEAD})::integer) AS share, (array_agg(run_at))[1] AS run_at, (array_agg(id))[1] AS id FROM (
            SELECT max_attempts, job_type, run_at, id FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
                AND {CLAIMABLE} AND (run_at, id) > (
                    SELECT coalesce(max(run_at), due_lanes.run_at), coalesce(max(id), due_lanes.id - 1) FROM (
                        SELECT run_at, id FROM first WHERE (queue, priority) = (due_lanes.queue, due_lanes.priority)
                        ORDER BY run_at DESC, id DESC LIMIT 1
                    ) AS last
                )
            ORDER BY run_at, id LIMIT {PROBED}
        ) AS probed
    ) AS head CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND (run_at, id) >= (head.run_at, head.id) AND {CLAIMABLE} AND {AHEAD}
        ORDER BY run_at, id
        LIMIT %(ahead)s FOR UPDATE SKIP LOCKED
    ) AS quick
    WHERE due_lanes.max_running IS NULL AND head.share >= 0.5
    LIMIT %(ahead)s
), """


def claim_sql(finished: str = "", spared: str = "", written: str = "NULL", further: str = "", also: str = "") -> str:
    """Return the claim, alone or after a CTE `finished`, for free slots only or for further runs too.

    Parts that a claim does not need are left out: behind a pooler, planning takes most of an idle worker's claim.

    The statement visits the lanes, locks the due rows, ends the expired leases, and claims the other rows.

    lanes      The lanes that the worker knows, each with its head.
    due_lanes  The lanes that have something due, that this worker serves and that are not paused, in the order of its
               visits.
    first      The due rows.  Within a lane they are in the order of job_runs_live: run_at, then id.  Rows that others
               have locked are skipped.  A running row is taken only if its lease has expired.  Lanes of queues with a
               limit are left to `claim_limited`, so that limits cost nothing where there are none.
    further    Rows after those, beyond the free slots: only of quick types, and only with another attempt left if the
               worker crashes before it starts them.  Only from lanes where at least half of the next runs (`head`)
               qualify: in other lanes, every claim would walk past many slow runs.
    seen       All rows locked by this claim.
    expired    The runs whose lease expired: their attempt ends, and they become suspects.
    claimed    The other rows, by ctid: a heap-only update, because no index contains a column that it changes.
    answer     The claimed runs, in order.  One more row follows it, with a JSON object in place of a payload: the runs
               that were finished, those whose lease expired, the heads of the known lanes, the number of runs taken
               from each lane, and whether queues with a limit have something due, first in the order of visits or
               later.
    """
    return f"""
WITH {finished} {KNOWN_LANES}, due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (%(declared)s::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (%(queues)s::text[] IS NULL OR lanes.queue = ANY(%(queues)s::text[]))
    ORDER BY lanes.turn
), first AS MATERIALIZED (
    SELECT due.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker, queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND (run_at, id) >= (due_lanes.run_at, due_lanes.id) AND ({CLAIMABLE} OR {LEASE_IS_OVER} {spared})
        ORDER BY run_at, id
        LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE due_lanes.max_running IS NULL
    LIMIT %(limit)s
), {further}seen AS MATERIALIZED (
    SELECT place, id, status, worker FROM first {also}
), {END_LEASES}, claimed AS (
    UPDATE rowcall.job_runs AS run SET {CLAIMED}
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN {sources_of(Event.CLAIM)}))
    RETURNING {CLAIMED_COLUMNS}
), answer AS (
    SELECT * FROM claimed ORDER BY priority, run_at, id
)
SELECT {ANSWER} FROM answer
UNION ALL
SELECT NULL, NULL, NULL, jsonb_build_object(
    'finished', {written}, 'expired', {EXPIRED_RUNS}, 'heads', {HEADS}, 'taken', {TAKEN}, 'limited',
    CASE WHEN (SELECT max_running IS NOT NULL FROM due_lanes LIMIT 1) THEN '{Limited.FIRST}'
         WHEN EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL) THEN '{Limited.LATER}' END
), NULL, NULL, NULL, NULL, NULL
"""


CLAIM = claim_sql()

# A busy worker sends its results and a claim for its free slots in one round trip and commit.  Both parts use the same
# snapshot, and one statement changes a row only once.  So the claim must not take the runs that the statement finishes:
# a success counts even if its lease has expired, unless another worker has claimed the run.
WITH_RESULTS = {
    "finished": f"finished AS ({SUCCEED}),",
    "spared": "AND id <> ALL(%(run_ids)s::bigint[])",
    "written": "(SELECT jsonb_agg(id) FROM finished)",
}
FINISH_AND_CLAIM = claim_sql(**WITH_RESULTS)
# The same, with claiming ahead.
FINISH_AND_CLAIM_AHEAD = claim_sql(**WITH_RESULTS, further=FURTHER, also="UNION ALL SELECT * FROM further")

# The claim without results.
NO_RESULTS: Mapping[str, Any] = {"run_ids": [], "lease_keys": "{}"}


def claim(connection: PgConnection, worker: str, request: ClaimRequest, finished: Sequence[Done] = ()) -> ClaimResult:
    """Claim due runs of queues without a limit, the most urgent and longest due first; also write these successes."""
    parameters = with_lanes(connection, request).parameters(worker)
    statement = CLAIM
    if finished or request.ahead:
        parameters |= done_parameters(finished) if finished else NO_RESULTS
        statement = FINISH_AND_CLAIM_AHEAD if request.ahead else FINISH_AND_CLAIM
    return ClaimResult.of(fetch_prepared(connection, BY_INDEX + statement, parameters))
