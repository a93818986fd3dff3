"""Idle: find out in one statement that `once` has nothing to do, and record such a visit in another one."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.base.database import Connection, fetch_all, fetch_one
from rowcall.definitions.tick import BEAT
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.failures.attempts import NOT_COUNTED
from rowcall.queue.failures.count import SETTLED
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.workers import FORGET, REGISTER, SILENCE_SECONDS, Registration
from rowcall.schema.revision import SCHEMA, Schema, mismatch

# Whether nothing is due: no unfinished run, served by this worker or not, and no schedule has a time that has come, so
# that nothing can be claimed, swept or decided; no failed attempt is to be counted; no definition reports to a ping
# URL; every queue with a declared limit has its row; and this version is known, which marks a deploy.  After a gap
# without ticks, the tick logs the gap.  Another visit may have ticked since this transaction began.
IS_IDLE = f"""
WITH RECURSIVE {LANES}
SELECT revision, fits, NOT EXISTS (SELECT FROM lanes WHERE run_at <= now())
    AND NOT EXISTS (SELECT FROM rowcall.job_definitions WHERE next_run_at <= now())
    AND NOT EXISTS (SELECT FROM rowcall.job_definitions WHERE ping_url IS NOT NULL AND removed_at IS NULL)
    AND NOT EXISTS ({NOT_COUNTED} AND ended_at < now() - {SETTLED})
    AND EXISTS (
        SELECT FROM rowcall.schedule_ticks
        WHERE ticked_at BETWEEN now() - interval '{SILENCE_SECONDS} seconds' AND clock_timestamp()
            AND worker IS NOT NULL
    )
    AND EXISTS (SELECT FROM rowcall.worker_versions WHERE version = %(version)s)
    AND %(names)s::text[] <@ ARRAY(SELECT name FROM rowcall.queues WHERE name = ANY(%(names)s::text[])) AS idle
FROM ({SCHEMA}) AS schema
"""

# Every visit ticks and registers, so that people see when and where workers were.
VISIT = f"""
WITH forgotten AS ({FORGET}), beat AS ({BEAT})
{REGISTER}
"""


def visit_idle(connection: Connection, worker: Registration, limited_queues: Sequence[str]) -> bool:
    """If nothing is due, record that this worker looked and stopped; return whether that is so."""
    found = fetch_one(connection, BY_INDEX + IS_IDLE, {"names": list(limited_queues), "version": worker.version})
    if found is None or not found.pop("idle") or mismatch(Schema(**found)):
        return False
    fetch_all(connection, VISIT, {**vars(worker), "stopped": True, "worker": worker.id})
    return True
