"""Leases: the right of one worker to one run.  The heartbeat keeps them, the sweep ends those that ran out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rowcall.base.database import Connection, fetch_all, fetch_value
from rowcall.queue.fragments import BY_INDEX, HISTORY, LEASE_KEY
from rowcall.status import Event, Status, sources_of

# One statement for all leases of a process.  greatest(): a late heartbeat must not shorten a lease.
# Primary key; locked_until is in no index, so this is a heap-only update.
HEARTBEAT = f"""
UPDATE rowcall.job_runs AS run
SET locked_until = greatest(
        run.locked_until, now() + (%(lease_keys)s::jsonb ->> {LEASE_KEY})::float8 * interval '1 second'),
    updated_at = now()
WHERE run.id = ANY(%(run_ids)s::bigint[]) AND %(lease_keys)s::jsonb ? {LEASE_KEY} AND run.locked_by = %(worker)s
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

# What a lease that ran out does to its run.  The claims do the same to the runs that they find on their way.
EXPIRED = f"""
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN '{Status.CANCELLED}'
                  WHEN run.attempts >= run.max_attempts THEN '{Status.DEAD}'
                  ELSE '{Status.FAILED}' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    locked_by = NULL, locked_until = NULL, updated_at = now()"""

# The attempt that ended with the lease, as HISTORY takes it.  The worker is the one that was seen before the update.
EXPIRED_ATTEMPT = f"""
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, '{Event.EXPIRE}' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics"""

# The sweep of one run by its id, which an operator or a test asks for.  lease_no as seen.
EXPIRE = f"""
WITH seen AS (
    SELECT id, locked_by AS worker FROM rowcall.job_runs
    WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND status IN {sources_of(Event.EXPIRE)} AND locked_until < now()
    FOR UPDATE
), expired AS (
    UPDATE rowcall.job_runs AS run SET {EXPIRED}
    FROM seen WHERE run.id = seen.id
    RETURNING run.*
), ended AS (
    SELECT {EXPIRED_ATTEMPT} FROM expired JOIN seen ON seen.id = expired.id
), history AS ({HISTORY})
SELECT id FROM expired
"""


class Lease(NamedTuple):
    """One worker's right to one run: with the run's status, the fence of everything that a worker writes.

    The number of the attempt is not part of it.  Statements that need it read it from the row, where nobody but the
    owner of this very lease can have changed it.
    """

    worker: str
    run_id: int
    lease_no: int

    @property
    def key(self) -> str:
        """What LEASE_KEY says of the run's row."""
        return f"{self.run_id}/{self.lease_no}"


def parameters_of(leases: Mapping[Lease, str]) -> dict[str, Any]:
    """Leases of one worker, each with a value as JSON text, as statements for many runs take them."""
    [worker] = {lease.worker for lease in leases}
    entries = [f'"{lease.key}": {value}' for lease, value in leases.items()]
    run_ids = [lease.run_id for lease in leases]
    return {"worker": worker, "run_ids": run_ids, "lease_keys": "{" + ", ".join(entries) + "}"}


def heartbeat(connection: Connection, seconds: Mapping[Lease, float]) -> dict[Lease, bool]:
    """Renew one worker's leases for so many seconds from now.

    The answer says of each lease whether cancelling was asked for; a lease that is missing from it is lost.
    """
    if not seconds:
        return {}
    parameters = parameters_of({lease: json.dumps(length) for lease, length in seconds.items()})
    rows = fetch_all(connection, BY_INDEX + HEARTBEAT, parameters)
    return {Lease(parameters["worker"], row["id"], row["lease_no"]): row["cancel_requested"] for row in rows}


def note_progress(connection: Connection, lease: Lease, progress: str) -> bool:
    """Keep how far a handler says it is, as JSON text; False when the lease was lost, and nothing was kept."""
    return bool(fetch_all(connection, PROGRESS, {**lease._asdict(), "progress": progress}))


def saved(connection: Connection, run_id: int) -> Any:
    """What an earlier attempt saved with its progress, for the next one to go on from."""
    return fetch_value(connection, SAVED, {"run_id": run_id})


def expire(connection: Connection, run_id: int, lease_no: int) -> bool:
    """End a lease that has run out; False when it has not, or is another by now."""
    parameters: dict[str, Any] = {"run_id": run_id, "lease_no": lease_no}
    return bool(fetch_all(connection, EXPIRE, parameters))
