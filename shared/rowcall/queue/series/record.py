"""Record what a worker has counted: one row for each minute, job type and worker.

A worker counts in its memory, and writes its counts with its heartbeat: a row for each end would cost each small batch
of ends a quarter more.  So a crash loses the counts since the last heartbeat.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from rowcall.base.database import Connection, fetch_value
from rowcall.queue.failures.attempts import KEPT
from rowcall.queue.fragments import IN_ORDER
from rowcall.queue.series.histogram import BUCKETS


class End(StrEnum):
    """How an attempt ended: the run's new status, or why another attempt follows."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"
    RELEASED = "released"


@dataclass
class MinuteCounts:
    """What one worker counted for a job type in one minute; `minute` is the number of minutes since 1970.

    `waiting` and `running` are histograms of seconds: of attempts that began in this minute, and that ended in it.
    """

    minute: int
    job_type: str
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    cancelled: int = 0
    snoozed: int = 0
    released: int = 0
    waiting: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    running: list[int] = field(default_factory=lambda: [0] * BUCKETS)


# The database's time, with which the worker learns in which minute something ends.
CLOCK = "date_part('epoch', clock_timestamp())"

# The first worker of a version marks a deploy.
BEGIN = f"""
WITH marked AS (
    INSERT INTO rowcall.worker_versions (version) VALUES (%(version)s) ON CONFLICT (version) DO NOTHING
)
SELECT {CLOCK}
"""

# Each worker has its own rows, so that none waits for another.  It sends the whole counts of a minute again when they
# have grown: a write that is repeated because its commit was not confirmed counts nothing twice.
WRITE_COUNTS = f"""
WITH written AS (
    INSERT INTO rowcall.run_counts (minute, job_type, worker, succeeded, failed, dead, cancelled, snoozed, released,
        waiting, running)
    SELECT to_timestamp(minute * 60), job_type, %(worker)s, succeeded, failed, dead, cancelled, snoozed, released,
        waiting, running
    FROM jsonb_to_recordset(%(counts)s::jsonb) AS new(minute bigint, job_type text, succeeded integer, failed integer,
        dead integer, cancelled integer, snoozed integer, released integer, waiting integer[], running integer[])
    ON CONFLICT (minute, job_type, worker) DO UPDATE
    SET succeeded = excluded.succeeded, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
        snoozed = excluded.snoozed, released = excluded.released, waiting = excluded.waiting, running = excluded.running
)
SELECT {CLOCK}
"""

# Primary key.
DELETE_OLD = f"""
WITH deleted AS (
    DELETE FROM rowcall.run_counts WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM rowcall.run_counts WHERE minute < now() - {KEPT}
        ORDER BY minute LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT count(*) AS deleted FROM deleted
"""


def begin_counting(connection: Connection, version: str) -> float:
    """Record that a worker of this version has started; return the database's time in seconds since 1970."""
    now: float = fetch_value(connection, BEGIN, {"version": version})
    return now


def write_counts(connection: Connection, worker: str, counts: Sequence[MinuteCounts]) -> float:
    """Write all that this worker has counted in these minutes; return the database's time in seconds since 1970."""
    sent = {"worker": worker, "counts": json.dumps([asdict(one) for one in counts])}
    now: float = fetch_value(connection, WRITE_COUNTS, sent)
    return now


def delete_old_run_counts(connection: Connection, batch: int) -> int:
    """Delete at most `batch` rows that are past their retention; return how many."""
    deleted: int = fetch_value(connection, IN_ORDER + DELETE_OLD, {"batch": batch})
    return deleted
