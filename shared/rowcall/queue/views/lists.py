"""Lists: the newest or the oldest runs that match a filter, one page at a time, and how many there are.

No index fits every filter, and each further index on job_runs would slow down every enqueue.  So a page scans an index
from its newest or its oldest run on, skips runs that do not match, and stops after SCANNED_MOST entries.  Then `next`
continues after the last scanned entry, even if the page is short or empty: a client that follows `next` to the end gets
every match.  A page also ends before it exceeds PAGE_BYTES.

Lists include the archive: PostgreSQL merges the indexes of job_runs and of each month in their common order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from psycopg2.errorcodes import LOCK_NOT_AVAILABLE, QUERY_CANCELED

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, sqlstate_of
from rowcall.base.errors import DatabaseUnavailable, SearchTooSlow
from rowcall.base.outages import LOCKED
from rowcall.queue.fragments import BY_INDEX, FROM_ALL_RUNS
from rowcall.queue.views import created, cursors, pages
from rowcall.queue.views.filters import MATCHES_BESIDES_KEY, REMEMBERED, Filter
from rowcall.queue.views.pages import Order
from rowcall.status import Status

SCANNED_MOST = 20_000

# A page that takes longer is cancelled, unless its caller sets another limit.
SECONDS = 5

# The part of that time that it may wait for a lock: less than all of it, so that the error names the lock.
WAITED = 0.8

# Read in the order of an index, without sorting, whatever the statistics say.
IN_ORDER = f"""{BY_INDEX} SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = %(milliseconds)s; SET LOCAL lock_timeout = %(waited)s;"""


class IndexScan(NamedTuple):
    """A way to read runs from an index, and the order of the runs that it has read."""

    name: str
    entries: str
    order: str
    listed: str


ITS_ID = "(SELECT id FROM rowcall.job_definitions WHERE name = %(definition)s)"


def scans(order: Order) -> tuple[IndexScan, ...]:
    """Return a scan of each index, from the newest run to the oldest (DESC) or the reverse (ASC).

    The primary key is read from `id` to `end_id`.  The others are read from `at` and `id` to `end`: because only they
    have the order of times, the planner cannot read another index, whatever the statistics say.
    """
    way, past, until = order.way, order.past, ">=" if order is Order.DESC else "<"
    beyond = f"(created_at, id) {past} (%(at)s::timestamptz, %(id)s) AND created_at {until} %(end)s::timestamptz"
    by_time = f"created_at {way}, id {way}"
    named = "" if order is Order.DESC else "_ascending"
    return (
        # The primary key.
        IndexScan(f"all{named}", f"id {past} %(id)s AND id {until} %(end_id)s", f"id {way}", f"id {way}"),
        # job_runs_failed: a run with an error has failed_at, and so has every failed or dead run.
        IndexScan(f"failed{named}", f"failed_at IS NOT NULL AND {beyond}", by_time, by_time),
        # job_runs_definition.  The conditions compare rows, not only the definition's id.
        IndexScan(
            f"definition{named}",
            f"""definition_id IS NOT NULL
        AND (definition_id, created_at, id) {past} ({ITS_ID}, %(at)s::timestamptz, %(id)s)
        AND (definition_id, created_at, id) {until} ({ITS_ID}, %(end)s::timestamptz, 0)""",
            f"definition_id {way}, {by_time}",
            by_time,
        ),
        # The indexes of keys on both tables, and request_keys' primary key: a few runs, of several callers and types.
        # They are sorted by an expression, so that the planner does not read job_runs_failed or another index
        # to get its order.
        IndexScan(
            f"key{named}",
            f"""id = ANY(ARRAY(
            SELECT id {FROM_ALL_RUNS} WHERE idempotency_key = %(key)s
            UNION ALL
            SELECT id {FROM_ALL_RUNS} WHERE held_key = %(key)s
            UNION ALL
            {REMEMBERED}
            UNION ALL
            SELECT id FROM rowcall.archived_runs WHERE further_keys ? %(key)s
        )) AND {beyond}""",
            f"created_at + interval '0' {way}, id {way}",
            by_time,
        ),
    )


HAVE_FAILED = {Status.FAILED, Status.DEAD}

IN_EACH_ORDER = {order: scans(order) for order in Order}

# Those that bulk changes use.
SCANS = IN_EACH_ORDER[Order.DESC]

# The large columns of a run, which are sent only on request.
LARGE = ("payload", "result")

# The columns of a run on a page.
SHOWN = """id, definition_id, (SELECT name FROM rowcall.job_definitions WHERE id = page.definition_id) AS definition,
        job_type, status, progress, queue, priority, attempts, max_attempts, lease_no, natural_key, idempotency_key,
        key_owner, run_at, scheduled_for, locked_by, locked_until, cancel_requested_at, last_error, error_type,
        failed_at, created_by, trace_parent, created_at, started_at, finished_at, updated_at, pruned_at, archived"""
SHOWN += "".join(
    f",\n        CASE WHEN '{name}' = ANY(%(include)s::text[]) THEN {name} END AS {name}" for name in LARGE
)

# A run that left a bare row is listed once, with what the archive has.  OFFSET keeps PostgreSQL from reading the whole
# archive into a hash table.
ONCE = """(archived OR pruned_at IS NULL OR NOT EXISTS (
        SELECT FROM rowcall.archived_runs AS kept WHERE kept.id = scanned.id AND kept.created_at = scanned.created_at
        OFFSET 0
    ))"""

# The helper columns of a row on a page.
BOUND = frozenset({"bound_at", "bound_id"})


def page_sql(scan: IndexScan, shown: str = SHOWN, besides: str = ONCE, source: str = FROM_ALL_RUNS) -> str:
    """Return a query for a page and the number of rows found; if the page is short, also for where its scan ended.

    It is one statement, so that all parts see the same rows.  The inner LIMIT keeps the filter out of the scan; rows
    stream through both, so a full page ends the scan.
    """
    return f"""{IN_ORDER}
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * {source} WHERE {scan.entries} ORDER BY {scan.order} LIMIT %(most)s
    ) AS scanned
    WHERE {MATCHES_BESIDES_KEY} AND {besides}
    ORDER BY {scan.order} LIMIT %(limit)s + 1
), bound AS (
    SELECT created_at, id {source}
    WHERE {scan.entries} AND (SELECT count(*) FROM page) <= %(limit)s
    ORDER BY {scan.order} OFFSET %(most)s - 1 LIMIT 1
), shown AS (
    SELECT {shown} FROM page
), measured AS ({pages.measured(scan.listed)}
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= %(limit)s AND {pages.FITS}
ORDER BY {scan.listed}
"""


def count_sql(scan: IndexScan) -> str:
    """Return a query that counts the matches among the newest SCANNED_MOST runs."""
    return f"""{IN_ORDER}
SELECT count(*) FILTER (WHERE {MATCHES_BESIDES_KEY} AND {ONCE}) AS value, count(*) >= %(most)s AS capped FROM (
    SELECT * {FROM_ALL_RUNS} WHERE {scan.entries} ORDER BY {scan.order} LIMIT %(most)s
) AS scanned
"""


# Name of a scan -> the query for a page.
PAGES = {scan.name: page_sql(scan) for in_order in IN_EACH_ORDER.values() for scan in in_order}

# Name of a scan -> the query that counts the matches.
COUNTS = {scan.name: count_sql(scan) for scan in SCANS}


@dataclass(frozen=True)
class Page:
    """Some of the matching runs, and the cursor of the next page; None if there are no more."""

    runs: list[Row]
    next: str | None


def list_runs(
    connection: Connection,
    criteria: Filter,
    limit: int = 50,
    cursor: str | None = None,
    most: int = SCANNED_MOST,
    *,
    include: Sequence[str] = (),
    order: Order = Order.DESC,
    page_bytes: int = pages.PAGE_BYTES,
    seconds: float = SECONDS,
) -> Page:
    """Return the first runs that match, with the name of their definition and the columns of LARGE in `include`."""
    asked = parameters(connection, criteria, limit, cursor, most, order, seconds)
    values = {**asked, "include": list(include), "page_bytes": page_bytes}
    page = page_of(connection, PAGES[scan_for(criteria, order).name], criteria, values, order, seconds)
    left_out = {*LARGE} - {*include}
    return Page([{name: run[name] for name in run if name not in left_out} for run in page.runs], page.next)


def page_of(
    connection: Connection,
    sql: str,
    criteria: Filter,
    values: dict[str, Any],
    order: Order = Order.DESC,
    seconds: float = SECONDS,
) -> Page:
    """Run a statement of page_sql, and return its page."""
    rows = searched(connection, sql, values, seconds)
    bound_at, bound_id = rows[0]["bound_at"], rows[0]["bound_id"]
    runs, more = pages.read([row for row in rows if row["id"] is not None], BOUND)
    if more:
        return Page(runs, cursors.written_time(order.scope(criteria.text), runs[-1]["created_at"], runs[-1]["id"]))
    return Page(
        runs, None if bound_id is None else cursors.written_time(order.scope(criteria.text), bound_at, bound_id)
    )


def count_runs(connection: Connection, criteria: Filter, most: int = SCANNED_MOST, *, seconds: float = SECONDS) -> Row:
    """Return how many runs match (`value`) among those that one page scans; `capped` if there may be more."""
    values = parameters(connection, criteria, 0, None, most, seconds=seconds)
    [row] = searched(connection, COUNTS[scan_for(criteria).name], values, seconds)
    return row


def searched(connection: Connection, sql: str, values: dict[str, Any], seconds: float) -> list[Row]:
    """Run a statement with the settings of IN_ORDER; its time limits apply to the rest of the transaction."""
    milliseconds = round(seconds * 1000)
    try:
        return fetch_all(
            connection, sql, {**values, "milliseconds": milliseconds, "waited": round(WAITED * milliseconds)}
        )
    except Exception as error:
        if sqlstate_of(error) == QUERY_CANCELED:
            raise SearchTooSlow(seconds) from None
        if sqlstate_of(error) == LOCK_NOT_AVAILABLE:
            raise DatabaseUnavailable(LOCKED) from None
        raise


def scan_for(criteria: Filter, order: Order = Order.DESC) -> IndexScan:
    """Return the most selective index for this filter."""
    by_id, failed, definition, key = IN_EACH_ORDER[order]
    if criteria.key is not None:
        return key
    if criteria.definition is not None:
        return definition
    if criteria.error_type is not None or (criteria.status and {*criteria.status} <= HAVE_FAILED):
        return failed
    return by_id


def parameters(
    connection: Connection,
    criteria: Filter,
    limit: int,
    cursor: str | None,
    most: int = SCANNED_MOST,
    order: Order = Order.DESC,
    seconds: float = SECONDS,
    *,
    searches: bool = True,
) -> dict[str, Any]:
    """Return the parameters of page_sql: the filter, the range of the index, and limits.

    If it `searches`, a range of times becomes a range of ids.
    """
    newest, oldest = criteria.created_before or "infinity", criteria.created_after or "-infinity"
    start, end = (newest, oldest) if order is Order.DESC else (oldest, newest)
    first_id = end_id = 0
    if scan_for(criteria, order) is IN_EACH_ORDER[order][0]:
        sought = criteria if searches else Filter()
        first_id, end_id = _range_of_ids(connection, sought, order, seconds, is_first=cursor is None)
    at, run_id = (start, first_id) if cursor is None else cursors.read_time(order.scope(criteria.text), cursor)
    bounds = {"at": at, "id": run_id, "end": end, "end_id": end_id}
    page = {"limit": limit, "most": most, "include": [], "page_bytes": pages.PAGE_BYTES}
    return {**criteria.parameters(), **bounds, **page}


def _range_of_ids(
    connection: Connection, criteria: Filter, order: Order, seconds: float, *, is_first: bool
) -> tuple[int, int]:
    """Return the ids between which are all runs of the filter's times; only the first page needs its beginning."""
    low, high, margin = 0, LARGEST_ID, created.MARGIN_SECONDS
    if criteria.created_after and (is_first or order is Order.DESC):
        low = _begin(connection, criteria.created_after, -margin, seconds)["low"]
    if criteria.created_before and (is_first or order is Order.ASC):
        high = _begin(connection, criteria.created_before, margin, seconds)["high"]
    return (high, low) if order is Order.DESC else (low - 1, high)


def _begin(connection: Connection, moment: datetime, margin: int, seconds: float) -> Row:
    values = {"moment": moment, "margin": margin, "near": created.NEAR}
    [row] = searched(connection, IN_ORDER + created.BEGIN, values, seconds)
    return row
