"""Sweep: visit every lane, end expired leases, and find runs that claims skip or do not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.claims.lanes import BEGINNING, CLAIMABLE, LEASE_IS_OVER, Lane, Position
from rowcall.queue.claims.request import ClaimRequest
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import END_LEASES
from rowcall.status import Status

# The most runs that one sweep reads; the next sweep continues after them.
SWEPT_MOST = 10_000

# The most runs that it reads of a lane from which claims take runs, if one of them is claimable.  Running runs are
# before the first claimable run or not far after it, and claims end the expired leases further on.
OPEN_MOST = 1000


def walk(walked: str) -> str:
    """Return a query for what a sweep finds in the lane `next`; `walked` is the number of runs read before it."""
    return f"""
        SELECT {walked} + count(*) AS walked, array_agg(id) FILTER (WHERE is_over) AS over,
            min(run_at) FILTER (WHERE is_claimable) AS run_at, (array_agg(id) FILTER (WHERE is_claimable))[1] AS id,
            max(run_at) AS until_run_at, (array_agg(id))[count(*)] AS until_id,
            count(*) = max(most) AND (bool_or(is_closed) OR NOT bool_or(is_claimable)) AS has_more
        FROM (
            SELECT coalesce(bool_or(paused_at IS NOT NULL OR max_running IS NOT NULL), false)
                OR %(declared)s::jsonb ? next.queue AS is_closed
            FROM rowcall.queues WHERE name = next.queue
        ) AS state CROSS JOIN LATERAL (
            SELECT CASE WHEN is_closed OR next.is_same THEN %(most)s - {walked}
                ELSE least({OPEN_MOST}, %(most)s - {walked}) END AS most
        ) AS bound CROSS JOIN LATERAL (
            SELECT id, run_at, {LEASE_IS_OVER} AS is_over, {CLAIMABLE} AS is_claimable FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = next.queue AND priority = next.priority AND run_at <= now()
                AND (run_at, id) > (next.after_run_at, next.after_id)
                AND (%(queues)s::text[] IS NULL OR next.queue = ANY(%(queues)s::text[]))
            ORDER BY run_at, id LIMIT bound.most
        ) AS run"""


# Walks the lanes, and ends the expired leases that it finds.
#
# lanes    One lane after another, from the position where the last sweep stopped: nothing before it, not even a dead
#          index entry, is read again.  In each lane, the next runs in the order of job_runs_live.  No index contains
#          the status, so that claims and heartbeats stay heap-only updates; a sweep therefore reads the rows, but only
#          a limited number of them.
# seen     The runs whose lease has expired.  Rows that others have locked are skipped: they are being ended or renewed.
#
# The result is each run whose lease was ended, and a last row with the lanes: for each, the first run that this worker
# may claim, the last run that was read, whether the lane has more runs after it, and the number of runs read so far.
SWEEP = f"""
WITH RECURSIVE lanes AS (
    SELECT next.queue, next.priority, learned.* FROM (
        SELECT queue, priority, is_same,
            CASE WHEN is_same THEN %(after_run_at)s::timestamptz ELSE '-infinity' END AS after_run_at,
            CASE WHEN is_same THEN %(after_id)s::bigint ELSE 0 END AS after_id
        FROM (
            SELECT queue, priority, (queue, priority) = (%(after_queue)s, (%(after_priority)s)::smallint) AS is_same
            FROM rowcall.job_runs
            WHERE finished_at IS NULL AND (queue, priority, run_at, id) > (
                %(after_queue)s, (%(after_priority)s)::smallint, %(after_run_at)s::timestamptz, %(after_id)s::bigint)
            ORDER BY queue, priority, run_at, id LIMIT 1
        ) AS found
    ) AS next CROSS JOIN LATERAL ({walk("0")}
    ) AS learned
    UNION ALL
    SELECT next.queue, next.priority, learned.* FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, false AS is_same, '-infinity'::timestamptz AS after_run_at, 0 AS after_id
        FROM rowcall.job_runs
        WHERE finished_at IS NULL AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next CROSS JOIN LATERAL ({walk("lanes.walked")}
    ) AS learned
    WHERE lanes.has_more IS NOT TRUE AND lanes.walked < %(most)s
), seen AS MATERIALIZED (
    SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT unnest(over) FROM lanes)) AND {LEASE_IS_OVER}
    FOR UPDATE SKIP LOCKED
), {END_LEASES}
SELECT id, status, NULL AS lanes FROM expired
UNION ALL
SELECT NULL, NULL, (
    SELECT jsonb_agg(jsonb_build_array(
        queue, priority, run_at, id, until_run_at, until_id, coalesce(has_more, false), walked))
    FROM lanes)
"""

# Before the first lane.
FIRST_PLACE = {"after_queue": "", "after_priority": -32768, "after_run_at": "-infinity", "after_id": 0}


class Walked(NamedTuple):
    """What a sweep saw of a lane: the first run that this worker may claim, and the last run that it read.

    `has_more` means that the sweep stopped before the end of the lane and found nothing to claim there.
    """

    lane: Lane
    first: Position | None
    until: Position
    has_more: bool


@dataclass(frozen=True)
class Swept:
    """The runs whose lease was ended (id -> new status), where the next sweep continues, and the visited lanes."""

    expired: dict[int, Status] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=lambda: FIRST_PLACE)
    lanes: Sequence[Walked] = ()

    @property
    def complete(self) -> bool:
        """Whether this sweep reached the end of the last lane."""
        return self.place == FIRST_PLACE


def sweep(
    connection: PgConnection, request: ClaimRequest, place: Mapping[str, Any] = FIRST_PLACE, most: int = SWEPT_MOST
) -> Swept:
    """End expired leases in the queues of this request, of any job type, and report what is due."""
    parameters = {**request.parameters(""), **place, "most": most}
    *rows, (_, _, lanes) = fetch_prepared(connection, BY_INDEX + SWEEP, parameters)
    expired = {run_id: Status(status) for run_id, status, _ in rows}
    walked = [_walked(place, *lane) for lane in lanes or () if lane[4] is not None]
    return Swept(expired, _next_place(lanes[-1], most) if lanes else FIRST_PLACE, walked)


def _walked(
    place: Mapping[str, Any],
    queue: str,
    priority: int,
    run_at: str | None,
    run_id: int | None,
    until_run_at: str,
    until_id: int,
    has_more: bool,
    _runs: int,
) -> Walked:
    goes_on = (queue, priority) == (place["after_queue"], place["after_priority"])
    start = Position.of(place["after_run_at"], place["after_id"]) if goes_on else BEGINNING
    first = None if run_at is None or run_id is None else Position.of(run_at, run_id)
    return Walked(Lane(queue, priority, start), first, Position.of(until_run_at, until_id), has_more and first is None)


def _next_place(last: Sequence[Any], most: int) -> Mapping[str, Any]:
    """Return where the next sweep begins: in this lane if it has more runs, after it, or at the first lane again."""
    queue, priority, *_, run_at, run_id, has_more, walked = last
    if has_more:
        return dict(zip(FIRST_PLACE, (queue, priority, run_at, run_id), strict=True))
    return dict(zip(FIRST_PLACE, (queue, priority, "infinity", 0), strict=True)) if walked >= most else FIRST_PLACE
