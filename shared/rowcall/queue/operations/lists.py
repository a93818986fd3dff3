"""Operations, and the runs that an operation refused to change, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one
from rowcall.base.errors import OperationNotFound
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors
from rowcall.queue.views.pages import Order

GET_OPERATION = "SELECT * FROM rowcall.operations WHERE id = %(id)s"

# A filter has at most a few kilobytes, so a page of them is small.
LIST_OPERATIONS = {
    order: f"""
SELECT * FROM rowcall.operations WHERE id {order.past} %(beyond_id)s ORDER BY id {order.way} LIMIT %(limit)s + 1
"""
    for order in Order
}

REFUSALS_PAGE = {
    order: f"""
SELECT run_id, reason, refused_at FROM rowcall.operation_refusals
WHERE operation_id = %(id)s AND run_id {order.past} %(beyond_id)s ORDER BY run_id {order.way} LIMIT %(limit)s + 1
"""
    for order in Order
}

# The columns that are only for the walk and for repeated requests.
INTERNAL = frozenset({"cursor", "key_owner", "request_fingerprint"})


@dataclass(frozen=True)
class Page:
    """Some rows, and the cursor of the next page; None if there are no more."""

    rows: list[Row]
    next: str | None


def get_operation(connection: Connection, operation_id: int) -> Row:
    """Return an operation, or raise OperationNotFound."""
    known = 0 < operation_id <= LARGEST_ID
    row = fetch_one(connection, GET_OPERATION, {"id": operation_id}) if known else None
    if row is None:
        raise OperationNotFound(operation_id)
    return public(row)


def list_operations(
    connection: Connection, limit: int = 50, cursor: str | None = None, order: Order = Order.DESC
) -> Page:
    """Return the newest or the oldest operations."""
    scope = order.scope("operations")
    beyond_id = order.beginning if cursor is None else cursors.read(scope, cursor)[0]
    rows = fetch_all(connection, BY_INDEX + LIST_OPERATIONS[order], {"beyond_id": beyond_id, "limit": limit})
    page = [public(row) for row in rows[:limit]]
    return Page(page, cursors.written(scope, page[-1]["id"], 0) if len(rows) > limit else None)


def refusals_page(
    connection: Connection, operation_id: int, limit: int = 50, cursor: str | None = None, order: Order = Order.ASC
) -> Page:
    """Return the runs that an operation did not change, each with the reason, by their ids."""
    get_operation(connection, operation_id)
    scope = order.scope(f"refusals {operation_id}")
    beyond_id = order.beginning if cursor is None else cursors.read(scope, cursor)[0]
    values = {"id": operation_id, "beyond_id": beyond_id, "limit": limit}
    rows = fetch_all(connection, BY_INDEX + REFUSALS_PAGE[order], values)
    page = rows[:limit]
    return Page(page, cursors.written(scope, page[-1]["run_id"], 0) if len(rows) > limit else None)


def public(row: Row) -> Row:
    """Return the columns of an operation that are shown."""
    return {name: row[name] for name in row if name not in INTERNAL}
