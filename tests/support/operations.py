"""Start operations in tests, and carry them out as a worker does."""

from __future__ import annotations

from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue import Filter, operations
from rowcall.queue.operations import Action, Requested

OPERATOR = Operator("a test", "request-1")

FILTERS = Filter.__dataclass_fields__


def requested(action: Action, **asked: Any) -> Requested:
    """Return a request with these options and these criteria."""
    options = {name: asked.pop(name) for name in [*asked] if name not in FILTERS}
    return Requested(action, Filter(**asked), **options)


def start(connection: Connection, action: Action, key: str | None = None, **asked: Any) -> int:
    """Start an operation, and return its id."""
    started = operations.start(connection, requested(action, **asked), OPERATOR, key)
    operation_id: int = started.operation["id"]
    return operation_id


def finish(connection: Connection, operation_id: int, **sizes: int) -> Row:
    """Carry the operation out, batch by batch, until it needs an operator or is finished."""
    operation = operations.carry_on(connection, operation_id, **sizes)
    while operation["status"] in operations.ACTIVE:
        operation = operations.carry_on(connection, operation_id, **sizes)
    return operation


def done(connection: Connection, action: Action, **asked: Any) -> Row:
    """Start an operation and finish it."""
    sizes = {name: asked.pop(name) for name in ("batch", "scanned") if name in asked}
    return finish(connection, start(connection, action, **asked), **sizes)


def refusals(connection: Connection, operation: Row) -> dict[int, str]:
    """Return the reason for each refusal, by the id of its run."""
    rows = operations.refusals_page(connection, operation["id"], 200).rows
    return {row["run_id"]: row["reason"] for row in rows}


def statuses(connection: Connection, run_ids: list[int]) -> list[str]:
    """Return the statuses of these runs, in their order."""
    rows = fetch_all(connection, "SELECT id, status FROM rowcall.job_runs")
    known = {row["id"]: row["status"] for row in rows}
    return [known[run_id] for run_id in run_ids]
