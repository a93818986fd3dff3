"""Pages of lists: their order, and their limit in bytes, so that a page fits in a process's memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum

from rowcall.base.database import LARGEST_ID, Row
from rowcall.queue.views import cursors

# Measured in the JSON that PostgreSQL writes.  A page has at least one row of any size.  A response that escapes
# non-ASCII characters has up to three times as many bytes.
PAGE_BYTES = 1024 * 1024


class Order(StrEnum):
    """From the newest entry of a list to the oldest, or the reverse."""

    DESC = "desc"
    ASC = "asc"

    @property
    def way(self) -> str:
        """Return the word for ORDER BY."""
        return self.value.upper()

    @property
    def past(self) -> str:
        """Return the operator that finds what comes after a place in the list."""
        return "<" if self is Order.DESC else ">"

    @property
    def beginning(self) -> int:
        """Return an id that comes before all others."""
        return LARGEST_ID if self is Order.DESC else 0

    def scope(self, name: str) -> str:
        """Name this list in this order, for its cursors."""
        return name if self is Order.DESC else f"ascending {name}"


def measured(order: str) -> str:
    """Return a query that adds to each row of `shown` its place, the bytes so far, and the number of rows."""
    return f"""
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY {order}) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown"""


# The rows of `measured` that fit on a page.
FITS = "(bytes <= %(page_bytes)s OR place = 1)"

MEASURES = {"found", "place", "bytes"}


def read(rows: Sequence[Row], besides: frozenset[str] = frozenset()) -> tuple[list[Row], bool]:
    """Return the rows of a page without the helper columns, and whether there are more."""
    items = [{name: row[name] for name in row if name not in MEASURES | besides} for row in rows]
    return items, bool(rows) and rows[0]["found"] > len(rows)


def fitting(rows: Sequence[Row], page_bytes: int) -> list[Row]:
    """Return as many of these rows as fit on a page, for rows that were sorted in Python."""
    size = 0
    for place, row in enumerate(rows):
        size += len(json.dumps(row, default=str))
        if size > page_bytes and place:
            return list(rows[:place])
    return list(rows)


def by_name(
    scope: str, rows: Sequence[Row], cursor: str | None, page_bytes: int = PAGE_BYTES
) -> tuple[list[Row], str | None]:
    """Return the rows after this cursor that fit on a page, and the next cursor, for a list that is read whole."""
    after = "" if cursor is None else cursors.read_text(scope, cursor)
    rest = sorted((row for row in rows if row["name"] > after), key=lambda row: str(row["name"]))
    page = fitting(rest, page_bytes)
    return page, cursors.written_text(scope, page[-1]["name"]) if len(page) < len(rest) else None
