"""The changes that an operator can make to a waiting or finished run.  Each one adds a row to audit_log."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any

from psycopg2.errorcodes import UNIQUE_VIOLATION

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all, fetch_one, sqlstate_of
from rowcall.base.errors import (
    KeyGone,
    NaturalKeyHeld,
    RunArchived,
    RunChanged,
    RunInvalid,
    RunPruned,
    TransitionRefused,
)
from rowcall.base.errors.requests import FINAL_AND_ONLY_ONCE
from rowcall.base.timestamps import in_utc, unusable
from rowcall.job_types import JobType, catalogue
from rowcall.queue.enqueue import TRIES, Options, enqueue
from rowcall.queue.fragments import WAKE_WORKERS
from rowcall.queue.keys.holders import Keys, find_holders
from rowcall.queue.views.inspect import archived_run, lock_run, version_of, was_erased
from rowcall.queue.views.results import Enqueued
from rowcall.status import Event, Status, Who, allowed, sources_of

MADE_DUE = f"status = '{Status.QUEUED}', run_at = now(), updated_at = now()"
CAN_RUN_NOW = f"status IN {sources_of(Event.RUN_NOW)}"
RUN_NOW = f"UPDATE rowcall.job_runs SET {MADE_DUE} WHERE id = %(run_id)s AND {CAN_RUN_NOW} RETURNING *"

RESCHEDULED = f"status = '{Status.QUEUED}', run_at = %(run_at)s::timestamptz, updated_at = now()"
CAN_RESCHEDULE = f"status IN {sources_of(Event.RESCHEDULE)}"
RESCHEDULE = f"UPDATE rowcall.job_runs SET {RESCHEDULED} WHERE id = %(run_id)s AND {CAN_RESCHEDULE} RETURNING *"

# lease_no keeps its value, so that a worker that held this run before the retry cannot finish it.
RETRIED = f"""
    status = '{Status.QUEUED}', attempts = 0, run_at = now(), finished_at = NULL, cancel_requested_at = NULL,
    last_error = NULL, error_type = NULL, failed_at = NULL, last_stack = NULL, progress = NULL, updated_at = now()"""

# A pruned run has no payload to run again.
RETRIABLE = f"status IN {sources_of(Event.RETRY)} AND pruned_at IS NULL"

RETRY = f"UPDATE rowcall.job_runs SET {RETRIED} WHERE id = %(run_id)s AND {RETRIABLE} RETURNING *"

# The fields of a run that the audit log keeps before and after a change.
AUDITED = ("status", "attempts", "max_attempts", "lease_no", "run_at", "locked_by", "cancel_requested_at")


def enqueue_as(
    connection: Connection, operator: Operator, job_type: str, payload: Mapping[str, Any], **options: Any
) -> Enqueued:
    """Enqueue for a caller of the API or the command line; audit runs of types with the scope `admin`."""
    whose: Options = {"key_owner": operator.key_owner, "created_by": operator.who}
    outcome = enqueue(connection, job_type, payload, **whose, **options)
    audit_enqueued(connection, operator, catalogue()[job_type], payload, outcome)
    return outcome


def audit_enqueued(
    connection: Connection, operator: Operator, declared: JobType, payload: Mapping[str, Any], outcome: Enqueued
) -> None:
    """Add a row to audit_log for a new run of a type with the scope `admin`."""
    if declared.scope == "admin" and not outcome.replayed:
        asked = {"job_type": declared.name, "payload": declared.checked(payload)}
        record(connection, operator.who, "enqueue", "run", outcome.run_id, None, asked, operator.request_id)


def run_now(connection: Connection, run_id: int, operator: Operator, expected: Container[str] | None = None) -> Row:
    """Make a waiting run due at once; the attempts already made still count."""
    return change(connection, Event.RUN_NOW, RUN_NOW, run_id, operator, expected)


def reschedule(
    connection: Connection,
    run_id: int,
    operator: Operator,
    run_at: datetime,
    expected: Container[str] | None = None,
) -> Row:
    """Make a waiting run due at this time; the attempts already made still count."""
    if complaint := unusable(run_at):
        raise RunInvalid({"run_at": complaint})
    return change(connection, Event.RESCHEDULE, RESCHEDULE, run_id, operator, expected, run_at=in_utc(run_at))


def retry(connection: Connection, run_id: int, operator: Operator, expected: Container[str] | None = None) -> Row:
    """Queue a dead or cancelled run again with all its attempts; raise NaturalKeyHeld if another run holds its key."""
    return change(connection, Event.RETRY, RETRY, run_id, operator, expected)


def change(
    connection: Connection,
    event: Event,
    sql: str,
    run_id: int,
    operator: Operator,
    expected: Container[str] | None = None,
    **more: Any,
) -> Row:
    """Apply an operator's event and return the changed row; raise TransitionRefused with the events that are allowed.

    `expected` are versions of the run: if it now has none of them, raise RunChanged and change nothing.
    """
    before = lock_run(connection, run_id, event)
    check_version(before, expected)
    row = _changed(connection, event, sql, before, more)
    if row is None:
        raise refused(connection, before, event)
    if row["status"] == Status.QUEUED:
        fetch_all(connection, WAKE_WORKERS)
    after = {**_audited(row), **({"reason": operator.reason} if operator.reason else {})}
    record(connection, operator.who, event, "run", run_id, _audited(before), after, operator.request_id)
    return {**row, "definition": before["definition"]}


def check_version(run: Row, expected: Container[str] | None) -> None:
    """Raise RunChanged if a locked run has none of the versions that the operator expects."""
    version = version_of(run)
    if expected is not None and version not in expected:
        raise RunChanged(run["id"], version)


def allowed_events(run: Row) -> tuple[Event, ...]:
    """Return the events that an operator can trigger on this run now."""
    return () if run["pruned_at"] or run["archived"] else allowed(Status(run["status"]), Who.OPERATOR)


def refused(connection: Connection, run: Row, event: str) -> TransitionRefused:
    """Return an error that says why this event is not allowed, and which events are."""
    if run["pruned_at"]:
        kept = archived_run(connection, run["id"])
        if kept is not None and not kept["pruned_at"]:
            return RunArchived(run["id"], event, run["status"])
        erased, once = was_erased(connection, run["id"]), run["held_key"] is not None
        return RunPruned(run["id"], event, run["status"], run["pruned_at"], erased, once)
    again = f"only a clone, with `rowcall runs clone {run['id']}`" if run["held_key"] is None else FINAL_AND_ONLY_ONCE
    return TransitionRefused(run["id"], event, run["status"], allowed_events(run), f"lease {run['lease_no']}", again)


def _changed(connection: Connection, event: Event, sql: str, run: Row, more: dict[str, Any]) -> Row | None:
    """Change the locked run; raise NaturalKeyHeld if another run holds its natural key now.

    The transaction remains usable.  If the holder ends before it is looked up, the key is free: try again.
    """
    for _ in range(TRIES):
        try:
            with all_or_nothing(connection):
                return fetch_one(connection, sql, {"run_id": run["id"], **more})
        except Exception as error:
            if sqlstate_of(error) != UNIQUE_VIOLATION:
                raise
        holders = find_holders(connection, run["job_type"], "", [Keys(run["natural_key"])])
        if holder := holders.facts.get(run["natural_key"]):
            raise NaturalKeyHeld(run["id"], event, run["status"], holder.run_id)
    raise KeyGone


def _audited(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in AUDITED}
