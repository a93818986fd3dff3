"""Leases: one worker's exclusive right to one run.  Heartbeats renew them; sweeps and claims end expired ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rowcall.base.database import Connection, fetch_all, fetch_value
from rowcall.queue.fragments import BY_INDEX, HISTORY, LEASE_KEY
from rowcall.status import Event, Status, sources_of

# The runs of a worker's leases, found by primary key.  LEASE_KEY distinguishes a lease from earlier leases of its run.
OWN = f"""run.id = ANY(%(run_ids)s::bigint[]) AND %(lease_keys)s::jsonb ? {LEASE_KEY} AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.HEARTBEAT)}"""

# The rows that no other transaction has locked, so that a locked row delays only itself.
UNLOCKED = f"SELECT run.id FROM rowcall.job_runs AS run WHERE {OWN} FOR NO KEY UPDATE SKIP LOCKED"

# The leases that are not lost, by primary key; it waits for no row.
OWNED = f"SELECT run.id FROM rowcall.job_runs AS run WHERE {OWN}"

# One statement for all leases of a process.  greatest(): a late heartbeat must not shorten a lease.  Primary key;
# locked_until is in no index, so this is a heap-only update.  It waits for no row: a locked row is returned unchanged,
# and not renewed.  A lease that is not returned at all is lost.
HEARTBEAT = f"""
WITH unlocked AS ({UNLOCKED}), renewed AS (
    UPDATE rowcall.job_runs AS run
    SET locked_until = greatest(
            run.locked_until, now() + (%(lease_keys)s::jsonb ->> {LEASE_KEY})::float8 * interval '1 second'),
        updated_at = now()
    WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked))
    RETURNING run.id, run.lease_no, run.cancel_requested_at IS NOT NULL AS cancel_requested
)
SELECT id, lease_no, cancel_requested, true AS renewed FROM renewed
UNION ALL
SELECT run.id, run.lease_no, run.cancel_requested_at IS NOT NULL, false FROM rowcall.job_runs AS run
WHERE (SELECT count(*) FROM renewed) < cardinality(%(run_ids)s::bigint[])
    AND {OWN} AND run.id <> ALL(ARRAY(SELECT id FROM renewed))
"""

# The lease of one handler, in the handler's own transaction.
HELD = f"""id = %(run_id)s AND lease_no = %(lease_no)s AND locked_by = %(worker)s
            AND status IN {sources_of(Event.HEARTBEAT)}"""

# The end of a handler's step: the lease is renewed, and cannot expire before the step commits.  If another step of the
# same handler has locked the row, this step only locks it FOR SHARE and does not renew the lease, because otherwise the
# two would wait for each other.
RENEW = f"""
WITH renewed AS (
    UPDATE rowcall.job_runs AS run
    SET locked_until = greatest(run.locked_until,
            pg_catalog.clock_timestamp() + %(seconds)s * interval '1 second'), updated_at = pg_catalog.now()
    WHERE run.id = (
        SELECT id FROM rowcall.job_runs WHERE {HELD} FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING run.id
)
SELECT id FROM renewed
UNION ALL
SELECT held.id FROM (
    SELECT id FROM rowcall.job_runs WHERE {HELD} AND NOT EXISTS (SELECT FROM renewed) FOR SHARE
) AS held
"""

# The value that the handler saves for its next attempt, stored with its progress.  Fenced like every write of a worker.
SAVE = f"""
UPDATE rowcall.job_runs AS run
SET progress = coalesce(run.progress, '{{}}') || pg_catalog.jsonb_build_object('saved', %(saved)s::jsonb),
    updated_at = pg_catalog.now()
WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
    AND run.status IN {sources_of(Event.HEARTBEAT)}
RETURNING run.id
"""

# The progress that handlers report to people: many runs at once, without waiting for locked rows.
SHOW_PROGRESS = f"""
WITH unlocked AS ({UNLOCKED})
UPDATE rowcall.job_runs AS run
SET progress = coalesce(run.progress, '{{}}') || (%(lease_keys)s::jsonb -> {LEASE_KEY}), updated_at = now()
WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked))
RETURNING run.id, run.lease_no
"""

SAVED = "SELECT progress -> 'saved' FROM rowcall.job_runs WHERE id = %(run_id)s"

# Who has the lease of a run that was handed over: first a message, which names its queue and task, then the consumer
# that begins the run.  Names of workers contain no space.
MESSAGE, CONSUMER = "celery ", "consumer "

# Nobody has begun the run, so the end of this lease neither counts as an attempt nor makes it a suspect, and the run
# has been due for as long as before.
UNBEGUN = f"starts_with(run.locked_by, '{MESSAGE}')"

# The run is finished when its lease expires.
OVER = f"(run.cancel_requested_at IS NOT NULL OR (run.attempts >= run.max_attempts AND NOT {UNBEGUN}))"

# The changes to a run whose lease expired.  Claims make the same changes to expired runs that they find.
EXPIRED = f"""
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN '{Status.CANCELLED}'
                  WHEN {UNBEGUN} THEN '{Status.QUEUED}'
                  WHEN run.attempts >= run.max_attempts THEN '{Status.DEAD}'
                  ELSE '{Status.FAILED}' END,
    finished_at = CASE WHEN {OVER} THEN now() END,
    run_at = CASE WHEN {OVER} OR {UNBEGUN} THEN run.run_at ELSE now() END,
    last_error = CASE WHEN {UNBEGUN} THEN 'no consumer began the run: its message was lost, or waits for too long'
        ELSE 'the lease of ' || run.locked_by || ' expired: the worker died, froze, or lost the database' END,
    error_type = CASE WHEN {UNBEGUN} THEN 'MessageLost' ELSE 'LeaseExpired' END, failed_at = now(), last_stack = NULL,
    attempts = run.attempts - ({UNBEGUN})::integer, suspect = run.suspect + (NOT {UNBEGUN})::integer,
    locked_by = NULL, locked_until = NULL, updated_at = now()"""

# The attempt that ended with the lease, for HISTORY.  The worker comes from `seen`, because the update clears it.
EXPIRED_ATTEMPT = f"""
    expired.id AS run_id, expired.lease_no, '{Event.EXPIRE}' AS outcome, seen.worker, expired.started_at,
    expired.attempts + starts_with(seen.worker, '{MESSAGE}')::integer AS attempt, expired.error_type,
    expired.last_error AS error, NULL AS stack, false AS permanent, NULL::jsonb AS forensics"""

# Ends the expired leases among the locked rows of a CTE `seen`: their place, id, status and worker.
END_LEASES = f"""expired AS (
    UPDATE rowcall.job_runs AS run SET {EXPIRED}
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN {sources_of(Event.EXPIRE)}))
    RETURNING run.*
), ended AS (
    SELECT {EXPIRED_ATTEMPT} FROM expired JOIN seen ON seen.id = expired.id
), history AS ({HISTORY})"""

# Ends the lease of one run by its id, for an operator or a test.  It locks the row first, because an UPDATE that has
# waited for a row at a ctid may change it without evaluating the condition again.
EXPIRE = f"""
WITH seen AS (
    SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND status IN {sources_of(Event.EXPIRE)} AND locked_until < now()
    FOR UPDATE
), {END_LEASES}
SELECT id FROM expired
"""


class Lease(NamedTuple):
    """One worker's right to one run; with the status of the run, it is the fence of every write of a worker.

    The attempt number is not part of the lease.  Statements that need it read it from the row, where only the owner of
    this lease can have changed it.
    """

    worker: str
    run_id: int
    lease_no: int

    @property
    def key(self) -> str:
        """Return the value of LEASE_KEY for this run."""
        return f"{self.run_id}/{self.lease_no}"


# Primary key.  Only a worker that makes traces reads it, so that claims stay as cheap as they are.
TRACE_PARENT = "SELECT trace_parent FROM rowcall.job_runs WHERE id = %(run_id)s"


def parameters_of(leases: Mapping[Lease, str]) -> dict[str, Any]:
    """Return the parameters for a statement on many runs: leases of one worker, each with a value as JSON text."""
    [worker] = {lease.worker for lease in leases}
    entries = [f'"{run_id}/{lease_no}": {value}' for (_, run_id, lease_no), value in leases.items()]
    # As text, because the server parses an SQL array of a thousand values one by one.
    run_ids = "{" + ",".join([str(run_id) for _, run_id, _ in leases]) + "}"
    return {"worker": worker, "run_ids": run_ids, "lease_keys": "{" + ", ".join(entries) + "}"}


class LeaseRenewal(NamedTuple):
    """The state of a lease that is not lost; it is not renewed if another transaction has locked its run's row."""

    renewed: bool
    cancel_requested: bool


def heartbeat(connection: Connection, seconds: Mapping[Lease, float]) -> dict[Lease, LeaseRenewal]:
    """Renew leases of one worker, each for its own number of seconds; a lease missing from the result is lost."""
    if not seconds:
        return {}
    parameters = parameters_of({lease: json.dumps(length) for lease, length in seconds.items()})
    rows = fetch_all(connection, BY_INDEX + HEARTBEAT, parameters)
    return {
        Lease(parameters["worker"], row["id"], row["lease_no"]): LeaseRenewal(row["renewed"], row["cancel_requested"])
        for row in rows
    }


def renew(connection: Connection, lease: Lease, seconds: float) -> bool:
    """Renew a lease in the handler's own transaction, and lock it until that ends; return False if it is lost."""
    return bool(fetch_all(connection, RENEW, {**lease._asdict(), "seconds": seconds}))


def unlocked(connection: Connection, leases: Sequence[Lease]) -> set[Lease]:
    """Return the leases of one worker that are not lost and whose rows no other transaction has locked."""
    return _found(connection, UNLOCKED, leases)


def owned(connection: Connection, leases: Sequence[Lease]) -> set[Lease]:
    """Return the leases of one worker that are not lost, whether their rows are locked or not."""
    return _found(connection, OWNED, leases)


def _found(connection: Connection, sql: str, leases: Sequence[Lease]) -> set[Lease]:
    if not leases:
        return set()
    parameters = parameters_of(dict.fromkeys(leases, "true"))
    ids = {row["id"] for row in fetch_all(connection, BY_INDEX + sql, parameters)}
    return {lease for lease in leases if lease.run_id in ids}


def show_progress(connection: Connection, progress: Mapping[Lease, str]) -> set[Lease]:
    """Write the progress of one worker's runs, as JSON text; return the leases for which it was written."""
    parameters = parameters_of(progress)
    rows = fetch_all(connection, BY_INDEX + SHOW_PROGRESS, parameters)
    return {Lease(parameters["worker"], row["id"], row["lease_no"]) for row in rows}


def save(connection: Connection, lease: Lease, what: str) -> bool:
    """Save this JSON text for the next attempt of the run; return False, and save nothing, if the lease is lost."""
    return bool(fetch_all(connection, SAVE, {**lease._asdict(), "saved": what}))


def saved(connection: Connection, run_id: int) -> Any:
    """Return what an earlier attempt saved, so that the next one can continue."""
    return fetch_value(connection, SAVED, {"run_id": run_id})


def expire(connection: Connection, run_id: int, lease_no: int) -> bool:
    """End an expired lease; return False if it has not expired, or if the run has a newer lease."""
    parameters: dict[str, Any] = {"run_id": run_id, "lease_no": lease_no}
    return bool(fetch_all(connection, EXPIRE, parameters))


def trace_parent(connection: Connection, run_id: int) -> str | None:
    """Return the traceparent that the run was enqueued with."""
    text: str | None = fetch_value(connection, TRACE_PARENT, {"run_id": run_id})
    return text
