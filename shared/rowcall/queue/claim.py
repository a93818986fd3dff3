"""Claim: a worker takes due runs, each under a lease of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from rowcall.base.database import PgConnection, fetch_tuples
from rowcall.queue.finish import BY_INDEX, SUCCEED, Done, done_parameters
from rowcall.queue.lease import EXPIRED_HISTORY, EXPIRED_SET
from rowcall.status import Event, Status, sources_of


class Limited(StrEnum):
    """What a claim says of the queues with a limit, which it leaves alone."""

    FIRST = "first"
    LATER = "later"


# Reads as: find the lanes, meet the due rows, end the leases that ran out, claim the rest.
#
# lanes      One (queue, priority) after another, each found by one probe of job_runs_live: the number of lanes counts,
#            never the number of rows in them.  A worker of a small queue never walks through a large one's rows.
# due_lanes  Those that have something due, are wanted and not paused, urgent ones first (a lower priority number is
#            more urgent), then the lane that has waited longest, so that no queue starves another.
# met        Within a lane by run_at, then id, in the order of job_runs_live.  Rows that others hold locked are skipped.
#            A running row is met only when its lease has run out: that is the whole sweep.  Lanes of queues with a
#            limit are left to `claim_limited`, so that who has no limits pays nothing for them.
# expired    Their attempt ended with the lease.  They come back as failed and are claimed next time.
# claimed    By ctid, from rows locked just above: a heap-only update, because no index knows a column it changes.
LANES = """
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
)"""

DUE_LANES = """
due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (%(declared)s::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (%(queues)s::text[] IS NULL OR lanes.queue = ANY(%(queues)s::text[]))
    ORDER BY lanes.priority, lanes.run_at
)"""

CLAIMABLE = f"""
    status IN {sources_of(Event.CLAIM)} AND attempts < max_attempts AND job_type = ANY(%(job_types)s::text[])"""

LEASE_IS_OVER = f"status IN {sources_of(Event.EXPIRE)} AND locked_until < now()"

MET = f"""
met AS MATERIALIZED (
    SELECT due.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND ({CLAIMABLE} OR {{over}})
        ORDER BY run_at, id
        LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE due_lanes.max_running IS NULL
    LIMIT %(limit)s
)"""

TAKEN = f"""
expired AS (
    UPDATE rowcall.job_runs AS run SET {EXPIRED_SET}
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM met WHERE status IN {sources_of(Event.EXPIRE)}))
    RETURNING run.*
), history AS ({EXPIRED_HISTORY.format(seen="met")}
), claimed AS (
    UPDATE rowcall.job_runs AS run
    SET status = '{Status.RUNNING}', attempts = run.attempts + 1, lease_no = run.lease_no + 1,
        locked_by = %(worker)s,
        locked_until = now() + (%(leases)s::jsonb ->> run.job_type)::float8 * interval '1 second',
        started_at = now(), updated_at = now(), progress = nullif(run.progress - '{{share,note}}'::text[], '{{}}')
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM met WHERE status IN {sources_of(Event.CLAIM)}))
    RETURNING run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts, run.scheduled_for,
        run.status, run.priority, run.run_at
), answer AS (
    SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, priority, run_at FROM claimed
    UNION ALL
    SELECT id, lease_no, job_type, NULL, attempts, max_attempts, scheduled_for, status, priority, run_at FROM expired
    ORDER BY priority, run_at, id
)"""


def answer(finished: str, beside: str) -> str:
    """The rows that were met, in order, and behind them one row with what is to be told beside them."""
    return f"""
SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, NULL::bigint[], NULL FROM answer
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, {finished}, {beside}
"""


# Whether queues with a limit have something due, and whether that comes before everything this claim could take.
LIMITED = f"""
CASE WHEN (SELECT max_running IS NOT NULL FROM due_lanes LIMIT 1) THEN '{Limited.FIRST}'
     WHEN EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL) THEN '{Limited.LATER}' END"""

MET_BY_CLAIM = MET.format(over=LEASE_IS_OVER)
CLAIM = f"WITH RECURSIVE {LANES}, {DUE_LANES}, {MET_BY_CLAIM}, {TAKEN} {answer('NULL', LIMITED)}"

# What a busy worker sends: the results it has, and the claim of what it has room for, in one round trip and commit.
# Both halves see the table as it was before, and one statement changes a row only once.  So the claim must leave the
# runs alone that are named as finished: where a lease has run out and nobody has taken the run, its success counts.
FINISHED = "(SELECT coalesce(array_agg(id), '{}') FROM finished)"
MET_BESIDE = MET.format(over=f"{LEASE_IS_OVER} AND id <> ALL(%(run_ids)s::bigint[])")
FINISH_AND_CLAIM = f"""
WITH RECURSIVE finished AS ({SUCCEED}), {LANES}, {DUE_LANES}, {MET_BESIDE}, {TAKEN} {answer(FINISHED, LIMITED)}
"""


class Claimed(NamedTuple):
    """One attempt of one run, ours until the lease ends."""

    run_id: int
    lease_no: int
    job_type: str
    payload: dict[str, Any]
    attempt: int
    max_attempts: int
    scheduled_for: datetime | None


@dataclass(frozen=True)
class ClaimRequest:
    """What a worker asks for: types with the seconds of their leases, queues (None: all), and how many at the most.

    `declared` names the queues of types with a max_running: queue -> how many of its runs may run at a time.
    """

    leases: Mapping[str, float]
    limit: int
    queues: Sequence[str] | None = None
    declared: Mapping[str, int] = field(default_factory=dict)

    def parameters(self, worker: str) -> dict[str, Any]:
        """As the claim's SQL takes it."""
        return {
            "worker": worker,
            "job_types": list(self.leases),
            "leases": json.dumps(dict(self.leases)),
            "limit": self.limit,
            "queues": None if self.queues is None else list(self.queues),
            "declared": json.dumps(dict(self.declared)),
        }


@dataclass(frozen=True)
class ClaimResult:
    """What a claim came upon: the runs it took, and the runs whose lease it found run out (id -> status now).

    While either is not empty there may be more that is due; `limited` tells of what is due in queues with a limit.
    """

    claimed: list[Claimed]
    expired: dict[int, Status]
    limited: Limited | None = None


def claim(connection: PgConnection, worker: str, wanted: ClaimRequest) -> ClaimResult:
    """Take due runs of queues without a limit, the urgent and the longest due first."""
    *rows, (*_, limited) = fetch_tuples(connection, BY_INDEX + CLAIM, wanted.parameters(worker))
    return claim_result(rows, limited)


def finish_and_claim(
    connection: PgConnection, worker: str, done: Sequence[Done], wanted: ClaimRequest
) -> tuple[set[int], ClaimResult]:
    """`succeed` and `claim` in one statement: the ids of those that were still this worker's, and what was met."""
    *rows, (*_, finished, limited) = fetch_tuples(
        connection, BY_INDEX + FINISH_AND_CLAIM, {**wanted.parameters(worker), **done_parameters(worker, done)}
    )
    return set(finished), claim_result(rows, limited)


def claim_result(rows: Sequence[tuple[Any, ...]], limited: str | None = None) -> ClaimResult:
    """A row is a Claimed's fields in their order, with the run's status behind them."""
    return ClaimResult(
        [Claimed._make(row[:7]) for row in rows if row[7] == Status.RUNNING],
        {row[0]: Status(row[7]) for row in rows if row[7] != Status.RUNNING},
        Limited(limited) if limited else None,
    )
