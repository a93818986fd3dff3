"""Operations, the newest first, and the runs that one did not change."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one
from rowcall.base.errors import OperationNotFound
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors

GET_OPERATION = "SELECT * FROM rowcall.operations WHERE id = %(id)s"

# A filter has at most a few kilobytes, so a page of them is small.
LIST_OPERATIONS = """
SELECT * FROM rowcall.operations WHERE id < %(before_id)s ORDER BY id DESC LIMIT %(limit)s + 1
"""

REFUSALS_PAGE = """
SELECT run_id, reason, refused_at FROM rowcall.operation_refusals
WHERE operation_id = %(id)s AND run_id > %(after_id)s ORDER BY run_id LIMIT %(limit)s + 1
"""

# The columns that are only for the walk and for repeated requests.
INTERNAL = frozenset({"cursor", "key_owner", "request_fingerprint"})


@dataclass(frozen=True)
class Page:
    """Some rows, and the cursor of the next page; None if there are no more."""

    rows: list[Row]
    next: str | None


def get_operation(connection: Connection, operation_id: int) -> Row:
    """Return an operation; raise OperationNotFound."""
    known = 0 < operation_id <= LARGEST_ID
    row = fetch_one(connection, GET_OPERATION, {"id": operation_id}) if known else None
    if row is None:
        raise OperationNotFound(operation_id)
    return public(row)


def list_operations(connection: Connection, limit: int = 50, cursor: str | None = None) -> Page:
    """Return the newest operations."""
    before_id = LARGEST_ID if cursor is None else cursors.read("operations", cursor)[0]
    rows = fetch_all(connection, BY_INDEX + LIST_OPERATIONS, {"before_id": before_id, "limit": limit})
    page = [public(row) for row in rows[:limit]]
    return Page(page, cursors.written("operations", page[-1]["id"], 0) if len(rows) > limit else None)


def refusals_page(connection: Connection, operation_id: int, limit: int = 50, cursor: str | None = None) -> Page:
    """Return the runs that an operation did not change, each with the reason, by their ids."""
    get_operation(connection, operation_id)
    scope = f"refusals {operation_id}"
    after_id = 0 if cursor is None else cursors.read(scope, cursor)[0]
    rows = fetch_all(connection, BY_INDEX + REFUSALS_PAGE, {"id": operation_id, "after_id": after_id, "limit": limit})
    page = rows[:limit]
    return Page(page, cursors.written(scope, page[-1]["run_id"], 0) if len(rows) > limit else None)


def public(row: Row) -> Row:
    """Return the columns of an operation that are shown."""
    return {name: row[name] for name in row if name not in INTERNAL}
