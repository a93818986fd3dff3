"""Sweep: end the leases that ran out in every lane, also in those that no claim visits, such as paused ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.claim import LEASE_IS_OVER, ClaimRequest
from rowcall.queue.fragments import BY_INDEX, HISTORY, LANES
from rowcall.queue.lease import EXPIRED, EXPIRED_ATTEMPT
from rowcall.status import Event, Status, sources_of

# The most runs that one sweep looks at; the next sweep continues behind them.
SWEPT_MOST = 10_000

# The most of a lane that claims take from: running rows stand at its head, and claims end the leases further behind.
OPEN_MOST = 1000

# Reads as: find the lanes, look at the next of their runs, end the leases that ran out.
#
# served   The lanes of this worker's queues, from the one on where the last sweep stopped.
# walked   Their runs behind the last one looked at, in the order of job_runs_live.  No index holds the status, so that
#          claims and heartbeats stay heap-only updates: the rows are read one by one, a bounded number of them.
# seen     Those whose lease ran out.  Rows that others have locked are skipped: they are being ended or renewed.
# answer   Each run whose lease was ended, and last a row that says where the next sweep continues (NULL: at the first
#          lane).
SWEEP = f"""
WITH RECURSIVE {LANES}, served AS MATERIALIZED (
    SELECT lanes.*,
        queues.paused_at IS NOT NULL OR queues.max_running IS NOT NULL OR %(declared)s::jsonb ? lanes.queue AS is_closed
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND (lanes.queue, lanes.priority) >= (%(after_queue)s, (%(after_priority)s)::smallint)
        AND (%(queues)s::text[] IS NULL OR lanes.queue = ANY(%(queues)s::text[]))
    ORDER BY lanes.queue, lanes.priority
), walked AS MATERIALIZED (
    SELECT found.* FROM served CROSS JOIN LATERAL (
        SELECT id, queue, priority, run_at, {LEASE_IS_OVER} AS is_over FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = served.queue AND priority = served.priority AND run_at <= now()
            AND (queue, priority, run_at, id)
                > (%(after_queue)s, (%(after_priority)s)::smallint, %(after_run_at)s::timestamptz, %(after_id)s::bigint)
        ORDER BY run_at, id LIMIT CASE WHEN served.is_closed THEN %(most)s ELSE {OPEN_MOST} END
    ) AS found
    LIMIT %(most)s
), seen AS MATERIALIZED (
    SELECT ctid AS place, id, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT id FROM walked WHERE is_over)) AND {LEASE_IS_OVER}
    FOR UPDATE SKIP LOCKED
), expired AS (
    UPDATE rowcall.job_runs AS run SET {EXPIRED}
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen)) AND run.status IN {sources_of(Event.EXPIRE)}
    RETURNING run.*
), ended AS (
    SELECT {EXPIRED_ATTEMPT} FROM expired JOIN seen ON seen.id = expired.id
), history AS ({HISTORY}), last AS (
    SELECT queue, priority, run_at, id FROM walked
    WHERE (SELECT count(*) FROM walked) = %(most)s ORDER BY queue DESC, priority DESC, run_at DESC, id DESC LIMIT 1
)
SELECT id, status, NULL AS after_queue, NULL AS after_priority, NULL AS after_run_at FROM expired
UNION ALL
(SELECT last.id, NULL, last.queue, last.priority, last.run_at::text FROM (SELECT) AS always LEFT JOIN last ON true)
"""

# Before the first lane.
BEGINNING = {"after_queue": "", "after_priority": -32768, "after_run_at": "-infinity", "after_id": 0}


@dataclass(frozen=True)
class Swept:
    """The runs whose lease was ended (id -> status now), and where the next sweep continues."""

    expired: dict[int, Status] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=lambda: BEGINNING)

    @property
    def complete(self) -> bool:
        """This sweep came to the end of the last lane."""
        return self.place == BEGINNING


def sweep(
    connection: PgConnection, request: ClaimRequest, place: Mapping[str, Any] = BEGINNING, most: int = SWEPT_MOST
) -> Swept:
    """End leases that ran out in the queues of this request, whatever their runs' job types."""
    parameters = {**request.parameters(""), **place, "most": most}
    *rows, (last_id, _, *after) = fetch_prepared(connection, BY_INDEX + SWEEP, parameters)
    expired = {row[0]: Status(row[1]) for row in rows}
    if last_id is None:
        return Swept(expired)
    return Swept(expired, dict(zip(BEGINNING, (*after, last_id), strict=True)))
