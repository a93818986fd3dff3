"""Carry an operation out: each transaction changes one batch, moves the cursor and updates the counts.

So if a worker dies between or within batches, none is lost or repeated: the next worker continues at the cursor.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all, fetch_one
from rowcall.queue.operations.actions import CHANGE_MANY, PAGES, Action
from rowcall.queue.operations.batch import Batch, change_batch
from rowcall.queue.operations.request import Requested, stored_request
from rowcall.queue.operations.state import ACTIVE, OperationStatus, after_batch
from rowcall.queue.operations.steer import lock_operation
from rowcall.queue.views import cursors
from rowcall.queue.views.filters import Filter
from rowcall.queue.views.lists import Page, page_of, parameters, scan_for
from rowcall.status import Event

# How many runs one transaction changes, and how many it scans for them.
BATCH = 500
SCANNED = 5000

# The mark of a cursor in the table.  That of a list contains all filters, so a version of Rowcall with one more filter
# could not continue an operation that an older one began.
KEPT = "operation"

# How many refusals of an operation are kept; all are counted.
REFUSALS_KEPT = 10_000

# Adds refusals to those that are kept, as long as there is room.
KEEP_REFUSALS = f"""
INSERT INTO rowcall.operation_refusals (operation_id, run_id, reason)
SELECT %(id)s, refused.run_id, refused.reason
FROM ROWS FROM (unnest(%(run_ids)s::bigint[]), unnest(%(reasons)s::text[])) AS refused(run_id, reason)
LIMIT greatest({REFUSALS_KEPT} - (
    SELECT count(*) FROM rowcall.operation_refusals WHERE operation_id = %(id)s
), 0)
ON CONFLICT DO NOTHING
"""

SAVE_PROGRESS = f"""
UPDATE rowcall.operations
SET status = %(new_status)s, cursor = %(cursor)s, changed = changed + %(changed)s, refused = refused + %(refused)s,
    canary_run_id = coalesce(canary_run_id, %(canary_run_id)s), updated_at = now(),
    finished_at = CASE WHEN %(new_status)s = '{OperationStatus.FINISHED}' THEN now() END
WHERE id = %(id)s
RETURNING *
"""


def carry_on(connection: Connection, operation_id: int, batch: int = BATCH, scanned: int = SCANNED) -> Row:
    """Change the next batch of runs, and return the operation; an operation that is not active stays unchanged.

    Only one transaction at a time does this: the others wait for its lock.
    """
    operation = lock_operation(connection, operation_id)
    status = OperationStatus(operation["status"])
    if status not in ACTIVE:
        return operation
    requested, left = stored_request(operation), _left(operation)
    most = 1 if status is OperationStatus.CANARY else batch
    page = _next(connection, operation, requested, min(most, left or most), scanned)
    met = len(page.runs)
    done = _change(connection, operation, requested, [run["id"] for run in page.runs])
    more = page.next is not None and met != left
    saved = _save(connection, operation, done, page, after_batch(status, met, more))
    if saved["status"] not in ACTIVE:
        _cancel_its_run(connection, saved)
    return saved


def _left(operation: Row) -> int | None:
    """Return how many more runs the operation may change; None if all that match."""
    if operation["max_runs"] is None:
        return None
    left: int = operation["max_runs"] - operation["changed"] - operation["refused"]
    return left


def _next(connection: Connection, operation: Row, requested: Requested, limit: int, scanned: int) -> Page:
    """Return the next runs; those that were enqueued after the operation do not belong to it."""
    criteria = _until(requested.narrowed, operation)
    cursor = _marked(operation["cursor"], KEPT, criteria.text)
    values = {**parameters(connection, criteria, limit, cursor, scanned, searches=False), "action": operation["action"]}
    page = page_of(connection, PAGES[scan_for(criteria).name], criteria, values)
    return Page(page.runs, _marked(page.next, criteria.text, KEPT))


def _marked(cursor: str | None, was: str, becomes: str) -> str | None:
    """Return the cursor for the same place with another mark."""
    return None if cursor is None else cursors.written(becomes, *cursors.read(was, cursor))


def _until(criteria: Filter, operation: Row) -> Filter:
    end = operation["created_at"] + timedelta(microseconds=1)
    return replace(criteria, created_before=min(criteria.created_before or end, end))


def _change(connection: Connection, operation: Row, requested: Requested, run_ids: list[int]) -> Batch:
    # The audit log names the operation with each run.
    operator = Operator(operation["requested_by"], f"operation-{operation['id']}")
    more: dict[str, Any] = {"run_at": requested.run_at} if requested.action is Action.RESCHEDULE else {}
    return change_batch(connection, requested.action, run_ids, requested.criteria, operator, **more)


def _cancel_its_run(connection: Connection, operation: Row) -> None:
    """Cancel the run that would have carried the operation out, if it has not started, because a command was faster."""
    values = {**Filter().parameters(), "run_ids": [operation["run_id"]], "who": operation["requested_by"]}
    fetch_all(connection, CHANGE_MANY[Event.CANCEL], {**values, "request_id": f"operation-{operation['id']}"})


def _save(connection: Connection, operation: Row, done: Batch, page: Page, status: OperationStatus) -> Row:
    if done.refused:
        kept = {"run_ids": list(done.refused), "reasons": list(done.refused.values())}
        fetch_all(connection, KEEP_REFUSALS, {"id": operation["id"], **kept})
    first = page.runs[0]["id"] if page.runs and operation["canary"] else None
    saved = fetch_one(
        connection,
        SAVE_PROGRESS,
        {
            "id": operation["id"],
            "new_status": status,
            "cursor": page.next,
            "changed": len(done.changed),
            "refused": len(done.refused),
            "canary_run_id": first,
        },
    )
    assert saved is not None
    return saved
