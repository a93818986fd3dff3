"""Lanes: a lane is the unfinished runs of one queue and one priority, in the order of job_runs_live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.fragments import BY_INDEX
from rowcall.status import Event, sources_of

# The waiting runs that this worker may claim; suspects are claimed separately.
SERVED = f"""
    status IN {sources_of(Event.CLAIM)} AND attempts < max_attempts AND job_type = ANY(%(job_types)s::text[])"""
CLAIMABLE = f"{SERVED} AND suspect = 0"

# The running runs whose lease has expired.
LEASE_IS_OVER = f"status IN {sources_of(Event.EXPIRE)} AND locked_until < now()"


def every_lane(among: str = "") -> str:
    """Return a recursive CTE that finds each lane with one index probe.

    Its cost depends on the number of lanes, not on the number of rows in them.
    """
    return f"""
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL {among} ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL {among} AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
)"""


# Read from job_runs_live; lanes of suspects from job_runs_suspect.
LANES = every_lane()
LANES_OF_SUSPECTS = every_lane("AND suspect > 0")

# The lanes in which something is due, not necessarily for this worker; the most urgent first.
FIND_LANES = f"""
WITH RECURSIVE {LANES}
SELECT queue, priority FROM lanes
WHERE run_at <= now() AND (%(queues)s::text[] IS NULL OR queue = ANY(%(queues)s::text[]))
ORDER BY priority, run_at
"""

# The lanes that a worker knows, in the order of its visits, each read from the position where its next run may be.
# Nothing before that position is read again: neither runs of other workers nor dead index entries that an old snapshot
# keeps.  The head of a lane is its first run that may be claimed or ended.
KNOWN_LANES = f"""lanes AS MATERIALIZED (
    SELECT known.queue, known.priority, known.turn, head.run_at, head.id FROM unnest(
        %(lane_queues)s::text[], %(lane_priorities)s::smallint[],
        %(lane_run_ats)s::timestamptz[], %(lane_ids)s::bigint[]
    ) WITH ORDINALITY AS known(queue, priority, run_at, id, turn) CROSS JOIN LATERAL (
        SELECT run_at, id FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
            AND (run_at, id) >= (known.run_at, known.id) AND ({CLAIMABLE} OR {LEASE_IS_OVER})
        ORDER BY run_at, id LIMIT 1
    ) AS head
)"""
# What a claim reports about lanes: the heads of the known lanes before the claim, and the number of runs it took from
# each lane.
HEADS = "(SELECT jsonb_agg(jsonb_build_array(queue, priority, run_at, id)) FROM due_lanes)"
TAKEN = """(SELECT jsonb_agg(jsonb_build_array(queue, priority, runs))
     FROM (SELECT queue, priority, count(*) AS runs FROM claimed GROUP BY queue, priority) AS taken)"""


class Position(NamedTuple):
    """A position in a lane: lanes are ordered by run_at, then by id."""

    run_at: datetime
    id: int

    @classmethod
    def of(cls, run_at: str, run_id: int) -> Position:
        """Parse a position from PostgreSQL's JSON; return BEGINNING for a time that Python cannot represent."""
        with suppress(ValueError):
            return cls(datetime.fromisoformat(run_at), run_id)
        return BEGINNING


# The start of a lane: the earliest time that Python can represent.
BEGINNING = Position(datetime.min.replace(tzinfo=UTC), 0)


# The queue and the priority.
LaneKey: TypeAlias = tuple[str, int]


class Lane(NamedTuple):
    """A lane, and the position where a claim starts."""

    queue: str
    priority: int
    start: Position = BEGINNING

    @property
    def key(self) -> LaneKey:
        """The queue and the priority, which identify the lane."""
        return self.queue, self.priority


def find_lanes(connection: PgConnection, queues: Sequence[str] | None = None) -> list[Lane]:
    """Return the lanes with due runs in these queues (None: in all queues)."""
    parameters = {"queues": None if queues is None else list(queues)}
    return [Lane(*lane) for lane in fetch_prepared(connection, BY_INDEX + FIND_LANES, parameters)]


def parameters_of_lanes(lanes: Sequence[Lane]) -> dict[str, Any]:
    """Return the parameters of KNOWN_LANES."""
    starts = [lane.start for lane in lanes]
    run_ats = ["-infinity" if start == BEGINNING else start.run_at.isoformat() for start in starts]
    return {
        "lane_queues": [lane.queue for lane in lanes],
        "lane_priorities": [lane.priority for lane in lanes],
        # Written as a PostgreSQL array, because a prepared statement does not accept texts as times.
        "lane_run_ats": "{" + ",".join(run_ats) + "}",
        "lane_ids": [start.id for start in starts],
    }


def heads_of(answer: Sequence[tuple[str, int, str, int]]) -> dict[LaneKey, Position]:
    """Return each lane's head, from the result of HEADS."""
    return {(queue, priority): Position.of(run_at, run_id) for queue, priority, run_at, run_id in answer}


def taken_of(answer: Sequence[tuple[str, int, int]]) -> Counter[LaneKey]:
    """Return how many runs were taken from each lane, from the result of TAKEN."""
    return Counter({(queue, priority): runs for queue, priority, runs in answer})
