"""Definitions and their occurrences, a page at a time."""

from __future__ import annotations

from datetime import datetime

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.base.timestamps import in_utc
from rowcall.queue.views import pages
from rowcall.queue.views.pages import Order

# The row of a removed definition stays, so a page can begin after it.
LIST_PAGE = f"""
WITH shown AS (
    SELECT * FROM rowcall.job_definitions
    WHERE removed_at IS NULL
        AND name > coalesce((SELECT name FROM rowcall.job_definitions WHERE id = %(after_id)s), '')
), measured AS ({pages.measured("name")}
)
SELECT * FROM measured WHERE {pages.FITS} ORDER BY name
"""

# The index job_definitions_due; a paused definition has a next time too, which will be skipped.
NEXT_DUE = """
SELECT name, job_type, schedule, time_zone, next_run_at, paused_at FROM rowcall.job_definitions
WHERE next_run_at IS NOT NULL ORDER BY next_run_at, name LIMIT %(limit)s
"""

# Scans the primary key of schedule_occurrences.
OCCURRENCES = {
    order: f"""
SELECT nominal_at, outcome, reason, run_id, revision, created_at FROM rowcall.schedule_occurrences
WHERE definition_id = %(definition_id)s AND nominal_at {order.past} %(beyond)s::timestamptz
ORDER BY nominal_at {order.way} LIMIT %(limit)s
"""
    for order in Order
}


def definitions_page(connection: Connection, after_id: int) -> tuple[list[Row], bool]:
    """Return a page of the definitions after the one with this id (0: from the first), and whether there are more."""
    parameters = {"after_id": after_id, "page_bytes": pages.PAGE_BYTES}
    return pages.read(fetch_all(connection, LIST_PAGE, parameters))


def next_due(connection: Connection, limit: int) -> list[Row]:
    """Return the definitions whose next nominal times are the earliest, including paused ones."""
    return fetch_all(connection, NEXT_DUE, {"limit": limit})


def occurrences_of(
    connection: Connection,
    definition_id: int,
    limit: int,
    beyond: datetime | None = None,
    order: Order = Order.DESC,
) -> list[Row]:
    """Return the latest or the earliest occurrences of a definition, optionally only those beyond a moment."""
    beginning = "infinity" if order is Order.DESC else "-infinity"
    page = {"definition_id": definition_id, "limit": limit, "beyond": in_utc(beyond) or beginning}
    return fetch_all(connection, OCCURRENCES[order], page)
