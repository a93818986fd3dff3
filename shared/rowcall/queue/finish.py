"""Finish: the one guarded door through which a worker ends an attempt.

Every statement names run, lease_no, owner and status (the fence F).  No row means that the lease was lost: another
worker or an operator has the run, and nothing of this attempt counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from rowcall.base.database import INTERNAL_NAMES, Connection, fetch_all
from rowcall.status import Event, Status, sources_of

# Sent before a hot statement, in the same round trip and transaction.  Each of them reaches its rows by an index or by
# ctid, whatever the table's size; statistics that are old by a million rows must not talk the planner into reading
# the whole table, or into compiling a plan that runs for a millisecond.
BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL jit = off;"

# What was held comes as one object, `run_id/lease_no` -> value, and is looked up row by row.  A join would say the
# same, but a planner that expects one row and meets a thousand joins them by trying every pair.
LEASE_KEY = "(run.id || '/' || run.lease_no)"

# Many at once: the primary key finds each row, and the fence decides.  The happy path writes no history.
SUCCEED = f"""
UPDATE rowcall.job_runs AS run
SET status = '{Status.SUCCEEDED}', result = nullif(%(done)s::jsonb -> {LEASE_KEY}, 'null'), finished_at = now(),
    updated_at = now(), locked_by = NULL, locked_until = NULL
WHERE run.id = ANY(%(run_ids)s::bigint[]) AND %(done)s::jsonb ? {LEASE_KEY} AND run.locked_by = %(worker)s
    AND run.status IN {sources_of(Event.SUCCEED)}
RETURNING run.id
"""


def _ending(event: Event, changes: str, guard: str = "true") -> str:
    """The statement of an end that was no success: the row by its fence, and the attempt into the history."""
    return f"""
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET {changes}, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(event)} AND {guard}
    RETURNING run.id, run.started_at, run.status
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT id, %(lease_no)s, %(attempt)s, '{event}', %(worker)s, started_at,
        %(error_type)s, %(error)s, %(stack)s, %(permanent)s, %(forensics)s::jsonb FROM ended
)
SELECT status FROM ended
"""


_ERROR = "last_error = %(error)s, error_type = %(error_type)s, last_stack = %(stack)s, failed_at = now()"

FAIL = _ending(
    Event.FAIL,
    f"status = '{Status.FAILED}', run_at = now() + %(delay)s * interval '1 second', {_ERROR}",
    guard="run.attempts < run.max_attempts",
)

GIVE_UP = _ending(Event.GIVE_UP, f"status = '{Status.DEAD}', finished_at = now(), {_ERROR}")

# A draining worker gives the run back.  run_at stays, so it is due at once.  An attempt that was begun stays counted,
# because nobody knows what the handler had already done; one that was not is no attempt.
RELEASE = _ending(
    Event.RELEASE,
    f"""status = CASE WHEN run.attempts < run.max_attempts THEN '{Status.QUEUED}' ELSE '{Status.DEAD}' END,
        finished_at = CASE WHEN run.attempts < run.max_attempts THEN NULL ELSE now() END, {_ERROR}""",
)

# For runs that a worker had claimed ahead and never began: as if they had not been claimed, but for the lease_no.
UNCLAIM = f"""
UPDATE rowcall.job_runs AS run
SET status = '{Status.QUEUED}', attempts = run.attempts - 1, locked_by = NULL, locked_until = NULL, updated_at = now()
WHERE run.id = ANY(%(run_ids)s::bigint[]) AND %(held)s::jsonb ? {LEASE_KEY} AND run.locked_by = %(worker)s
    AND run.status IN {sources_of(Event.UNCLAIM)}
RETURNING run.id
"""

# The handler itself asked to wait, so the attempt is given back; lease_no never is.
SNOOZE = _ending(Event.SNOOZE, f"status = '{Status.QUEUED}', run_at = %(until)s, attempts = run.attempts - 1")

CANCELLED = _ending(
    Event.CANCELLED,
    f"status = '{Status.CANCELLED}', finished_at = now()",
    guard="run.cancel_requested_at IS NOT NULL",
)


@dataclass(frozen=True)
class Ending:
    """The attempt that ends: whose it is, and under which lease."""

    worker: str
    run_id: int
    lease_no: int
    attempt: int


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed: short and safe to show, a type to group by, and the stack for who mends it.

    Forensics, as JSON text, tell how its child process ended where it had one.
    """

    error: str
    error_type: str
    stack: str | None = None
    permanent: bool = False
    forensics: str | None = None


class Done(NamedTuple):
    """A success to be written: whose, under which lease, and the result as JSON text (None: no result)."""

    run_id: int
    lease_no: int
    result: str | None


def succeed(connection: Connection, worker: str, done: Sequence[Done]) -> set[int]:
    """Finish runs; the ids of those that were still this worker's.

    The last statement of a handler's own transaction too, whose search_path may be anything.
    """
    return {
        row["id"] for row in fetch_all(connection, INTERNAL_NAMES + BY_INDEX + SUCCEED, done_parameters(worker, done))
    }


def done_parameters(worker: str, done: Sequence[Done]) -> dict[str, Any]:
    """As SUCCEED takes it."""
    entries = [f'"{run.run_id}/{run.lease_no}": {run.result or "null"}' for run in done]
    return {"worker": worker, "run_ids": [run.run_id for run in done], "done": "{" + ", ".join(entries) + "}"}


def fail(connection: Connection, ending: Ending, failure: Failure, delay: float) -> Status | None:
    """The attempt failed and another will be made after `delay` seconds."""
    return _end(connection, FAIL, ending, failure, delay=delay)


def give_up(connection: Connection, ending: Ending, failure: Failure) -> Status | None:
    """The attempt failed and there will be no other, unless an operator asks for it."""
    return _end(connection, GIVE_UP, ending, failure)


def release(connection: Connection, ending: Ending, reason: str, forensics: str | None = None) -> Status | None:
    """Give the run back unfinished; dead when this was its last attempt."""
    return _end(connection, RELEASE, ending, Failure(reason, "Released", forensics=forensics))


def unclaim(connection: Connection, worker: str, leases: Sequence[tuple[int, int]]) -> set[int]:
    """Give back (run_id, lease_no) pairs that were claimed and not begun; the ids of those that were still ours."""
    held = {f"{run_id}/{lease_no}": True for run_id, lease_no in leases}
    rows = fetch_all(
        connection,
        BY_INDEX + UNCLAIM,
        {"worker": worker, "run_ids": [run_id for run_id, _ in leases], "held": json.dumps(held)},
    )
    return {row["id"] for row in rows}


def snooze(
    connection: Connection, ending: Ending, until: datetime, reason: str, forensics: str | None = None
) -> Status | None:
    """The handler wants to be called again at `until`."""
    return _end(connection, SNOOZE, ending, Failure(reason, "Snooze", forensics=forensics), until=until)


def cancelled(connection: Connection, ending: Ending, forensics: str | None = None) -> Status | None:
    """The handler stopped because cancelling was asked for."""
    return _end(connection, CANCELLED, ending, Failure("cancelled on request", "Cancelled", forensics=forensics))


def _end(connection: Connection, sql: str, ending: Ending, failure: Failure, **more: Any) -> Status | None:
    """Run one ending: the run's status now, or None when the lease was lost."""
    rows = fetch_all(connection, sql, {**vars(ending), **vars(failure), **more})
    return Status(rows[0]["status"]) if rows else None
