"""Leases: kept by heartbeat, met by the sweep when they have run out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rowcall.base.database import Connection, fetch_all, fetch_value
from rowcall.queue.finish import BY_INDEX, LEASE_KEY
from rowcall.status import Event, Status, sources_of

# One statement for all leases of a process.  greatest(): a heartbeat that was held up must not shorten a lease.
# Primary key; locked_until is in no index, so this is a heap-only update.
HEARTBEAT = f"""
UPDATE rowcall.job_runs AS run
SET locked_until = greatest(
        run.locked_until, now() + (%(held)s::jsonb ->> {LEASE_KEY})::float8 * interval '1 second'),
    updated_at = now()
WHERE run.id = ANY(%(run_ids)s::bigint[]) AND %(held)s::jsonb ? {LEASE_KEY} AND run.locked_by = %(worker)s
    AND run.status IN {sources_of(Event.HEARTBEAT)}
RETURNING run.id, run.lease_no, run.cancel_requested_at IS NOT NULL AS cancel_requested
"""

# What the handler says of its progress, for people to see, and what it saves for its next attempt.  Fenced like every
# write of a worker.
PROGRESS = f"""
UPDATE rowcall.job_runs AS run SET progress = coalesce(run.progress, '{{}}') || %(progress)s::jsonb,
    updated_at = pg_catalog.now()
WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
    AND run.status IN {sources_of(Event.HEARTBEAT)}
RETURNING run.id
"""

SAVED = "SELECT progress -> 'saved' FROM rowcall.job_runs WHERE id = %(run_id)s"

# What becomes of a run whose lease ran out, as SET clauses; the claim does the same to those it meets on its way.
EXPIRED_SET = f"""
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN '{Status.CANCELLED}'
                  WHEN run.attempts >= run.max_attempts THEN '{Status.DEAD}'
                  ELSE '{Status.FAILED}' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    locked_by = NULL, locked_until = NULL, updated_at = now()"""

EXPIRED_HISTORY = f"""
    INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error)
    SELECT expired.id, lease_no, attempts, '{Event.EXPIRE}', worker, started_at, error_type, last_error
    FROM expired JOIN {{seen}} ON expired.id = {{seen}}.id"""

# The same for one run by id: what an operator or a test asks for.  lease_no as seen.
EXPIRE = f"""
WITH seen AS (
    SELECT id, locked_by AS worker FROM rowcall.job_runs
    WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND status IN {sources_of(Event.EXPIRE)} AND locked_until < now()
    FOR UPDATE
), expired AS (
    UPDATE rowcall.job_runs AS run SET {EXPIRED_SET}
    FROM seen WHERE run.id = seen.id
    RETURNING run.*
), history AS ({EXPIRED_HISTORY.format(seen="seen")})
SELECT id FROM expired
"""


@dataclass(frozen=True)
class LeaseRenewal:
    """A lease that a worker believes to hold."""

    run_id: int
    lease_no: int
    lease: float


def heartbeat(connection: Connection, worker: str, held: Sequence[LeaseRenewal]) -> dict[tuple[int, int], bool]:
    """Renew leases.  (run_id, lease_no) -> whether cancelling was asked for; what is missing has been lost."""
    leases = {f"{lease.run_id}/{lease.lease_no}": lease.lease for lease in held}
    rows = fetch_all(
        connection,
        BY_INDEX + HEARTBEAT,
        {"worker": worker, "run_ids": [lease.run_id for lease in held], "held": json.dumps(leases)},
    )
    return {(row["id"], row["lease_no"]): row["cancel_requested"] for row in rows}


def note_progress(connection: Connection, worker: str, key: tuple[int, int], progress: str) -> bool:
    """Keep how far a handler says it is, as JSON text; False when the lease was lost, and nothing was kept."""
    run_id, lease_no = key
    parameters = {"worker": worker, "run_id": run_id, "lease_no": lease_no, "progress": progress}
    return bool(fetch_all(connection, PROGRESS, parameters))


def saved(connection: Connection, run_id: int) -> Any:
    """What an earlier attempt saved with its progress, for the next one to go on from."""
    return fetch_value(connection, SAVED, {"run_id": run_id})


def expire(connection: Connection, run_id: int, lease_no: int) -> bool:
    """End a lease that has run out; False when it has not, or is another by now."""
    parameters: dict[str, Any] = {"run_id": run_id, "lease_no": lease_no}
    return bool(fetch_all(connection, EXPIRE, parameters))
