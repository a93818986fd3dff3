"""Finish: all statements with which a worker ends an attempt.

Every statement checks run, lease_no, owner and status (the fence).  If no row matches, the lease was lost: another
worker or an operator has the run, and the result of this attempt does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from rowcall.base.database import Connection, PgConnection, fetch_all, fetch_tuples
from rowcall.base.prepared import fetch_prepared
from rowcall.base.watched import INTERNAL_NAMES
from rowcall.queue.fragments import BY_INDEX, HISTORY, LEASE_KEY, WAKE
from rowcall.queue.lease import UNLOCKED, Lease, parameters_of
from rowcall.queue.run_log import Lines, LogLine, log_parameters, with_log
from rowcall.status import Event, Status, sources_of

# Many runs at once: the primary key finds each row, and the fence decides.  A success writes no history.
SUCCEED = f"""
UPDATE rowcall.job_runs AS run
SET status = '{Status.SUCCEEDED}', result = nullif(%(lease_keys)s::jsonb -> {LEASE_KEY}, 'null'),
    finished_at = now(), updated_at = now(), locked_by = NULL, locked_until = NULL
WHERE run.id = ANY(%(run_ids)s::bigint[]) AND %(lease_keys)s::jsonb ? {LEASE_KEY} AND run.locked_by = %(worker)s
    AND run.status IN {sources_of(Event.SUCCEED)}
RETURNING run.id
"""

# The columns of the run that show its latest failed attempt.
ERROR = "last_error = %(error)s, error_type = %(error_type)s, last_stack = %(stack)s, failed_at = now()"

# The parameters of HISTORY for an attempt that its owner ends, except its number and outcome.
ATTEMPT = """run.id AS run_id, run.lease_no, %(worker)s AS worker, run.started_at, %(error_type)s AS error_type,
        %(error)s AS error, %(stack)s AS stack, %(permanent)s::boolean AS permanent,
        %(forensics)s::jsonb AS forensics"""

# If an operator asked to cancel the run, every end of an attempt except a success cancels it.
ASKED = "run.cancel_requested_at IS NOT NULL"

# An attempt that its worker ends did not kill the worker.  But the run stays a suspect until it succeeds, or for an
# hour, so that it does not run alongside another suspect, which may have made it lose its lease.
CLEARED = """suspect = CASE WHEN run.failed_at < now() - interval '1 hour' THEN 0 ELSE least(run.suspect, 1) END"""

# The attempt failed, and another one follows, unless an operator asked to cancel the run.
FAIL = f"""
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN {ASKED} THEN '{Status.CANCELLED}' ELSE '{Status.FAILED}' END,
        finished_at = CASE WHEN {ASKED} THEN now() END,
        run_at = CASE WHEN {ASKED} THEN run.run_at ELSE now() + %(delay)s * interval '1 second' END, {ERROR},
        {CLEARED}, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.FAIL)} AND run.attempts < run.max_attempts
    RETURNING run.status, run.attempts AS attempt, '{Event.FAIL}' AS outcome, {ATTEMPT}
), history AS ({HISTORY})
SELECT status FROM ended
"""

# The attempt failed, and no other one follows.
GIVE_UP = f"""
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN {ASKED} THEN '{Status.CANCELLED}' ELSE '{Status.DEAD}' END, finished_at = now(), {ERROR},
        {CLEARED}, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.GIVE_UP)}
    RETURNING run.status, run.attempts AS attempt, '{Event.GIVE_UP}' AS outcome, {ATTEMPT}
), history AS ({HISTORY})
SELECT status FROM ended
"""

# A stopping worker gives back the run.  run_at does not change, so the run is due at once.  The attempt counts, because
# its handler has started and may have done something; UNCLAIM is for an attempt that has not started.
RELEASE = f"""
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN {ASKED} THEN '{Status.CANCELLED}'
                      WHEN run.attempts < run.max_attempts THEN '{Status.QUEUED}' ELSE '{Status.DEAD}' END,
        finished_at = CASE WHEN {ASKED} OR run.attempts >= run.max_attempts THEN now() END, {ERROR},
        {CLEARED}, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.RELEASE)}
    RETURNING run.status, run.attempts AS attempt, '{Event.RELEASE}' AS outcome, {ATTEMPT}
), history AS ({HISTORY})
SELECT status FROM ended
"""

# A handler may ask for a time in the past, perhaps because of a wrong clock; the run waits at least this long.
SHORTEST_SNOOZE_SECONDS = 1.0

# The handler asked to wait, so its attempt does not count; lease_no keeps its value, as always.  The history keeps only
# the last of several snoozes in a row, because a handler may snooze again and again for days.
SNOOZE = f"""
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN {ASKED} THEN '{Status.CANCELLED}' ELSE '{Status.QUEUED}' END,
        finished_at = CASE WHEN {ASKED} THEN now() END,
        run_at = CASE WHEN {ASKED} OR %(pause)s::float8 IS NULL THEN run.run_at
                      ELSE greatest(%(until)s::timestamptz, now() + %(pause)s * interval '1 second') END,
        attempts = run.attempts - 1,
        {CLEARED}, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.SNOOZE)}
    RETURNING run.status, run.attempts + 1 AS attempt, '{Event.SNOOZE}' AS outcome, {ATTEMPT}
), replaced AS (
    DELETE FROM rowcall.job_attempts AS earlier USING ended
    WHERE earlier.run_id = ended.run_id AND earlier.outcome = '{Event.SNOOZE}' AND earlier.lease_no = (
        SELECT lease_no FROM rowcall.job_attempts WHERE run_id = ended.run_id ORDER BY lease_no DESC LIMIT 1)
), history AS ({HISTORY})
SELECT status FROM ended
"""

# The handler stopped, because an operator asked to cancel the run.
CANCELLED = f"""
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = '{Status.CANCELLED}', finished_at = now(),
        {CLEARED}, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.CANCELLED)} AND {ASKED}
    RETURNING run.status, run.attempts AS attempt, '{Event.CANCELLED}' AS outcome, {ATTEMPT}
), history AS ({HISTORY})
SELECT status FROM ended
"""

# For runs that a worker claimed ahead and never started: everything except the lease_no is as before the claim.  Idle
# workers are woken, because they can start these runs.  A locked row is skipped; its lease will expire.
UNCLAIM = f"""
WITH unlocked AS ({UNLOCKED})
UPDATE rowcall.job_runs AS run
SET status = CASE WHEN {ASKED} THEN '{Status.CANCELLED}' ELSE '{Status.QUEUED}' END,
    finished_at = CASE WHEN {ASKED} THEN now() END, attempts = run.attempts - 1,
    locked_by = NULL, locked_until = NULL, updated_at = now()
WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked)) AND run.status IN {sources_of(Event.UNCLAIM)}
RETURNING run.id, {WAKE} AS woken
"""


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed: a short message, a type to group by, and the stack trace.

    `forensics`, as JSON text, describes how the child process ended, if the attempt had one.
    """

    error: str
    error_type: str
    stack: str | None = None
    permanent: bool = False
    forensics: str | None = None


class Done(NamedTuple):
    """A success to write: its lease, and the result as JSON text (None: no result)."""

    lease: Lease
    result: str | None


def succeed(connection: PgConnection, done: Sequence[Done], lines: Lines | None = None) -> set[int]:
    """Finish runs of one worker as succeeded, with the lines they logged; return those whose lease was not lost.

    With lines, the statement is not prepared, so that everything is one transaction in one round trip.
    This is also the last statement of a handler's own transaction, which may have any search_path.
    """
    if not done:
        return set()
    if lines:
        parameters = {**done_parameters(done), **log_parameters(lines)}
        rows = fetch_tuples(connection, with_log(INTERNAL_NAMES + BY_INDEX + SUCCEED, lines), parameters)
    else:
        rows = fetch_prepared(connection, INTERNAL_NAMES + BY_INDEX + SUCCEED, done_parameters(done))
    return {run_id for (run_id,) in rows}


def done_parameters(done: Sequence[Done]) -> dict[str, Any]:
    """Return the parameters of SUCCEED."""
    return parameters_of({lease: result or "null" for lease, result in done})


def fail(
    connection: Connection, lease: Lease, failure: Failure, delay: float, log: Sequence[LogLine] = ()
) -> Status | None:
    """Fail the attempt; another one follows after `delay` seconds, unless an operator asked to cancel the run."""
    return _end(connection, FAIL, lease, failure, log, delay=delay)


def give_up(connection: Connection, lease: Lease, failure: Failure, log: Sequence[LogLine] = ()) -> Status | None:
    """Fail the attempt for good; only an operator can retry the run."""
    return _end(connection, GIVE_UP, lease, failure, log)


def release(
    connection: Connection, lease: Lease, reason: str, forensics: str | None = None, log: Sequence[LogLine] = ()
) -> Status | None:
    """Give the run back unfinished to its queue; it becomes dead if this was its last attempt."""
    return _end(connection, RELEASE, lease, Failure(reason, "Released", forensics=forensics), log)


def unclaim(connection: Connection, leases: Sequence[Lease]) -> set[int]:
    """Give back runs that a worker claimed and did not start; return the ids of those whose lease was not lost."""
    if not leases:
        return set()
    rows = fetch_all(connection, BY_INDEX + UNCLAIM, parameters_of(dict.fromkeys(leases, "true")))
    return {row["id"] for row in rows}


def snooze(
    connection: Connection,
    lease: Lease,
    until: datetime | None,
    reason: str,
    forensics: str | None = None,
    pause: float | None = SHORTEST_SNOOZE_SECONDS,
    log: Sequence[LogLine] = (),
    error_type: str = "Snooze",
) -> Status | None:
    """End the attempt because the handler asked to wait until `until`, or for at least `pause` seconds.

    So does a worker whose broker has not taken the run's message; `error_type` says which.  Without a pause, run_at
    does not change: the run has been due for as long as before.
    """
    failure = Failure(reason, error_type, forensics=forensics)
    return _end(connection, SNOOZE, lease, failure, log, until=until, pause=pause)


def cancelled(
    connection: Connection, lease: Lease, forensics: str | None = None, log: Sequence[LogLine] = ()
) -> Status | None:
    """End the run as cancelled, because its handler stopped after a cancel request."""
    return _end(connection, CANCELLED, lease, Failure("cancelled on request", "Cancelled", forensics=forensics), log)


def _end(
    connection: Connection, sql: str, lease: Lease, failure: Failure, log: Sequence[LogLine], **more: Any
) -> Status | None:
    """End one attempt and write its log; return the new status of the run, or None if the lease was lost."""
    lines = {lease: log} if log else {}
    parameters = {**log_parameters(lines), **lease._asdict(), **vars(failure), **more}
    rows = fetch_all(connection, with_log(sql, lines), parameters)
    return Status(rows[0]["status"]) if rows else None
