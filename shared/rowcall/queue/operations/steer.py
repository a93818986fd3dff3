"""Start, stop and continue an operation.  Each adds a row to audit_log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_one
from rowcall.base.errors import KeyGone, OperationKeyConflict, OperationNotFound, OperationRefused
from rowcall.job_types.housekeeping import CARRY_OUT_OPERATION
from rowcall.queue.enqueue import enqueue
from rowcall.queue.keys.holders import checked_key
from rowcall.queue.operations.preview import preview
from rowcall.queue.operations.request import Requested
from rowcall.queue.operations.state import SOURCES, OperationEvent, OperationStatus, allowed_in

# The unique key decides between requests with the same Idempotency-Key.
START = """
INSERT INTO rowcall.operations
    (action, filter, run_at, max_runs, canary, reason, status, matched, counted_all, requested_by, key_owner,
     idempotency_key, request_fingerprint)
VALUES (%(action)s, %(filter)s::jsonb, %(run_at)s, %(max_runs)s, %(canary)s, %(reason)s, %(new_status)s, %(matched)s,
    %(counted_all)s, %(who)s, %(key_owner)s, %(key)s, %(request_fingerprint)s)
ON CONFLICT DO NOTHING
RETURNING *
"""

FIND_BY_KEY = """
SELECT * FROM rowcall.operations WHERE key_owner = %(key_owner)s AND idempotency_key = %(key)s
"""

LOCK_OPERATION = "SELECT * FROM rowcall.operations WHERE id = %(id)s FOR UPDATE"

SET_STATUS = """
UPDATE rowcall.operations SET status = %(new_status)s, updated_at = now() WHERE id = %(id)s RETURNING *
"""

SET_RUN = "UPDATE rowcall.operations SET run_id = %(run_id)s WHERE id = %(id)s RETURNING *"


@dataclass(frozen=True)
class Started:
    """The operation of a request; `replayed` means that an earlier request started it."""

    operation: Row
    replayed: bool


def start(connection: Connection, requested: Requested, operator: Operator, key: str | None = None) -> Started:
    """Start an operation on the runs that exist now; a worker carries it out after the commit."""
    checked_key(key)
    counted = preview(connection, requested)
    first = OperationStatus.CANARY if requested.canary else OperationStatus.RUNNING
    stored, fingerprint = requested.stored, requested.fingerprint
    values = {
        **stored,
        "filter": json.dumps(stored["filter"]),
        "new_status": first,
        "matched": counted.matched,
        "counted_all": counted.counted_all,
        "who": operator.who,
        "key_owner": operator.key_owner,
        "key": key,
        "request_fingerprint": fingerprint,
    }
    row = fetch_one(connection, START, values)
    if row is None:
        return Started(_replayed(connection, values), replayed=True)
    record(connection, operator.who, "start", "operation", row["id"], None, _audited(row), operator.request_id)
    return Started(_enqueue(connection, row, operator), replayed=False)


def stop(connection: Connection, operation_id: int, operator: Operator) -> Row:
    """Stop an operation before its next batch; runs that it has already changed stay changed."""
    operation = _in_a_status_for(connection, OperationEvent.STOP, operation_id)
    return _steered(connection, OperationEvent.STOP, operation, OperationStatus.STOPPED, operator)


def continue_operation(connection: Connection, operation_id: int, operator: Operator) -> Row:
    """Continue an operation that is waiting after its canary, or that was stopped, where it stopped."""
    operation = _in_a_status_for(connection, OperationEvent.CONTINUE, operation_id)
    before_canary = operation["canary"] and operation["canary_run_id"] is None
    status = OperationStatus.CANARY if before_canary else OperationStatus.RUNNING
    row = _steered(connection, OperationEvent.CONTINUE, operation, status, operator)
    return _enqueue(connection, row, operator)


def lock_operation(connection: Connection, operation_id: int) -> Row:
    """Return the operation, locked until the transaction ends; raise OperationNotFound."""
    known = 0 < operation_id <= LARGEST_ID
    row = fetch_one(connection, LOCK_OPERATION, {"id": operation_id}) if known else None
    if row is None:
        raise OperationNotFound(operation_id)
    return row


def _in_a_status_for(connection: Connection, event: OperationEvent, operation_id: int) -> Row:
    operation = lock_operation(connection, operation_id)
    status = OperationStatus(operation["status"])
    if status not in SOURCES[event]:
        raise OperationRefused(operation_id, event, status, allowed_in(status))
    return operation


def _steered(
    connection: Connection, event: OperationEvent, operation: Row, status: OperationStatus, operator: Operator
) -> Row:
    row = fetch_one(connection, SET_STATUS, {"id": operation["id"], "new_status": status})
    assert row is not None
    before, after = ({name: one[name] for name in ("status", "changed", "refused")} for one in (operation, row))
    record(connection, operator.who, event, "operation", row["id"], before, after, operator.request_id)
    return row


def _enqueue(connection: Connection, operation: Row, operator: Operator) -> Row:
    """Enqueue the run that carries the operation out.  Two of them at once do no harm: they take turns."""
    payload = {"operation_id": operation["id"]}
    run_id = enqueue(connection, CARRY_OUT_OPERATION, payload, created_by=operator.who).run_id
    row = fetch_one(connection, SET_RUN, {"id": operation["id"], "run_id": run_id})
    assert row is not None
    return row


def _replayed(connection: Connection, values: dict[str, Any]) -> Row:
    row = fetch_one(connection, FIND_BY_KEY, values)
    if row is None:
        raise KeyGone
    if row["request_fingerprint"] != values["request_fingerprint"]:
        raise OperationKeyConflict(values["key"], row["id"])
    return row


def _audited(row: Row) -> dict[str, Any]:
    """Return what the audit log keeps of a request: `payload` is a separate field, so that it can be erased."""
    names = ("action", "run_at", "max_runs", "canary", "reason", "matched")
    return {**row["filter"], **{name: _plain(row[name]) for name in names if row[name] is not None}}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
