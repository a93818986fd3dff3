"""A run's log, as its readers see it."""

from __future__ import annotations

from rowcall.base.database import Connection, Row, fetch_all, fetch_value
from rowcall.queue.views import pages
from rowcall.queue.views.pages import Order

# A run in job_runs has its lines in run_logs, in the order of the primary key; an archived one in its own row.
FROM_LINES = """FROM (
        SELECT * FROM rowcall.run_logs WHERE run_id = %(run_id)s
        UNION ALL
        SELECT logged.* FROM rowcall.archived_runs AS run
        CROSS JOIN jsonb_populate_recordset(NULL::rowcall.run_logs, run.log) AS logged WHERE run.id = %(run_id)s
    ) AS line"""

SHOWN = f"SELECT line_no, lease_no, logged_at, level, text {FROM_LINES}"

# A page at a time.
LOG_PAGE = {
    order: f"""
WITH shown AS (
    {SHOWN} WHERE line_no {order.past} %(beyond_line_no)s
    ORDER BY line_no {order.way} LIMIT %(limit)s + 1
), measured AS ({pages.measured(f"line_no {order.way}")}
)
SELECT * FROM measured WHERE place <= %(limit)s AND {pages.FITS} ORDER BY line_no {order.way}
"""
    for order in Order
}

# The newest lines.
LOG_END = f"{SHOWN} ORDER BY line_no DESC LIMIT %(limit)s"

# Lines are numbered from 1 without gaps, so the numbers that are missing are those of the lines that were left out.
LEFT_OUT = f"SELECT coalesce(max(line_no), 0) - count(*) {FROM_LINES}"


def log_page(
    connection: Connection,
    run_id: int,
    beyond: int,
    limit: int,
    page_bytes: int = pages.PAGE_BYTES,
    order: Order = Order.ASC,
) -> tuple[list[Row], bool]:
    """Return the lines beyond this one, up to the limit or the size of a page, and whether there are more."""
    parameters = {"run_id": run_id, "beyond_line_no": beyond, "limit": limit, "page_bytes": page_bytes}
    return pages.read(fetch_all(connection, LOG_PAGE[order], parameters))


def log_end(connection: Connection, run_id: int, limit: int) -> list[Row]:
    """Return the newest lines, the oldest of them first."""
    return fetch_all(connection, LOG_END, {"run_id": run_id, "limit": limit})[::-1]


def left_out(connection: Connection, run_id: int) -> int:
    """Return how many lines of the run were not kept."""
    count: int = fetch_value(connection, LEFT_OUT, {"run_id": run_id})
    return count
