"""Lists: the newest runs that match a filter, a page at a time, and how many there are.

No index fits every filter, and job_runs shall have no more of them.  So a page walks an index from the newest run on,
past what does not match, and no further than SCANNED_MOST entries.  When it has to end there, `next` goes on behind
the last one it looked at, though the page be short or empty: who follows `next` to its end has seen everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from rowcall.base.database import Connection, Row, fetch_all, in_time
from rowcall.base.errors import FilterInvalid, SearchTooSlow
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors
from rowcall.queue.views.filters import MATCHES, Filter
from rowcall.status import Status

SCANNED_MOST = 20_000

# Where even so many rows are slow to come by.
SECONDS = 5

# Walked in the order of an index, and not collected and sorted first, whatever the statistics say.
IN_ORDER = f"""{BY_INDEX} SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = %(milliseconds)s;"""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class IndexScan(NamedTuple):
    """An index that runs are walked by, the newest first."""

    name: str
    entries: str
    order: str = "created_at DESC, id DESC"


BEHIND = "(created_at, id) < (%(at)s::timestamptz, %(id)s) AND created_at >= %(from)s::timestamptz"

# job_runs_created, which knows all runs.
CREATED = IndexScan("created", BEHIND)

# job_runs_failed: whoever has an error has failed_at, and so has what is failed or dead.
FAILED = IndexScan("failed", f"failed_at IS NOT NULL AND {BEHIND}")
HAVE_FAILED = {Status.FAILED, Status.DEAD}

# job_runs_definition.  As rows, and not with an equals sign: then no other index has the order that is asked for, and
# job_runs_created is not walked instead though the statistics say that the definition has most of the runs.
ITS_ID = "(SELECT id FROM rowcall.job_definitions WHERE name = %(definition)s)"
DEFINITION = IndexScan(
    "definition",
    f"""definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ({ITS_ID}, %(at)s::timestamptz, %(id)s)
        AND (definition_id, created_at, id) >= ({ITS_ID}, %(from)s::timestamptz, 0)""",
    "definition_id DESC, created_at DESC, id DESC",
)

# job_runs_idempotency_key: one run at the most, which needs no order.
KEY = IndexScan("key", f"idempotency_key = %(key)s AND {BEHIND}", "idempotency_key")

SCANS = (CREATED, FAILED, DEFINITION, KEY)

# What a page shows of a run.
WHOLE = "page.*, (SELECT name FROM rowcall.job_definitions WHERE id = page.definition_id) AS definition"


def page_sql(scan: IndexScan, shown: str = WHOLE, besides: str = "true") -> str:
    """A page with one row more, which tells that there is another; only a short page asks where the walk had to end.

    One statement, so that both see the same rows.  The inner LIMIT keeps the filter out of the walk; rows stream
    through both, so that a full page ends the walk.
    """
    return f"""{IN_ORDER}
WITH page AS MATERIALIZED (
    SELECT walked.* FROM (
        SELECT * FROM rowcall.job_runs WHERE {scan.entries} ORDER BY {scan.order} LIMIT %(most)s
    ) AS walked
    WHERE {MATCHES} AND {besides}
    ORDER BY {scan.order} LIMIT %(limit)s + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE {scan.entries} AND (SELECT count(*) FROM page) <= %(limit)s
    ORDER BY {scan.order} OFFSET %(most)s - 1 LIMIT 1
)
SELECT {shown}, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN page ON true
ORDER BY page.created_at DESC, page.id DESC
"""


def count_sql(scan: IndexScan) -> str:
    """How many of the newest SCANNED_MOST match."""
    return f"""{IN_ORDER}
SELECT count(*) FILTER (WHERE {MATCHES}) AS value, count(*) >= %(most)s AS capped FROM (
    SELECT * FROM rowcall.job_runs WHERE {scan.entries} ORDER BY {scan.order} LIMIT %(most)s
) AS walked
"""


# Scan -> the page of a list.
PAGES = {scan.name: page_sql(scan) for scan in SCANS}

# Scan -> how many match.
COUNTS = {scan.name: count_sql(scan) for scan in SCANS}


@dataclass(frozen=True)
class Page:
    """Some of the runs that were asked for, and the cursor behind them; None where there are no more."""

    runs: list[Row]
    next: str | None


def list_runs(
    connection: Connection, wanted: Filter, limit: int = 50, cursor: str | None = None, most: int = SCANNED_MOST
) -> Page:
    """The newest runs that match, with the name of their definition."""
    return page_of(connection, PAGES[scan_for(wanted).name], wanted, limit, cursor, most)


def page_of(connection: Connection, sql: str, wanted: Filter, limit: int, cursor: str | None, most: int) -> Page:
    """The page that this page_sql shows."""
    rows = searched(connection, sql, parameters(wanted, limit, cursor, most))
    bound = {name: rows[0][name] for name in ("bound_at", "bound_id")}
    runs = [{name: row[name] for name in row if name not in bound} for row in rows if row["id"] is not None]
    if len(runs) > limit:
        return Page(runs[:limit], _behind(wanted, runs[limit - 1]["created_at"], runs[limit - 1]["id"]))
    return Page(runs, None if bound["bound_id"] is None else _behind(wanted, bound["bound_at"], bound["bound_id"]))


def count_runs(connection: Connection, wanted: Filter, most: int = SCANNED_MOST) -> Row:
    """How many match (`value`) of those that a page would look at; `capped` where there may be more behind them."""
    [row] = searched(connection, COUNTS[scan_for(wanted).name], parameters(wanted, 0, None, most))
    return row


def searched(connection: Connection, sql: str, known: dict[str, Any]) -> list[Row]:
    """Run a statement of IN_ORDER, or one after it; the rest of the transaction keeps the limit of time."""
    try:
        with in_time():
            return fetch_all(connection, sql, {**known, "milliseconds": round(SECONDS * 1000)})
    except TimeoutError:
        raise SearchTooSlow(SECONDS) from None


def scan_for(wanted: Filter) -> IndexScan:
    """The index that knows least besides what is wanted."""
    if wanted.key is not None:
        return KEY
    if wanted.definition is not None:
        return DEFINITION
    if wanted.error_type is not None or (wanted.status and {*wanted.status} <= HAVE_FAILED):
        return FAILED
    return CREATED


def parameters(wanted: Filter, limit: int, cursor: str | None, most: int = SCANNED_MOST) -> dict[str, Any]:
    """As page_sql takes it: the filter, and the stretch of the index from `at` and `id` back to `from`."""
    at, run_id = _place(wanted, cursor)
    stretch = {"at": at, "id": run_id, "from": wanted.created_after or "-infinity"}
    return {**wanted.parameters(), **stretch, "limit": limit, "most": most}


def _place(wanted: Filter, cursor: str | None) -> tuple[datetime | str, int]:
    """What the walk begins behind."""
    if cursor is None:
        return (wanted.created_before, 0) if wanted.created_before else ("infinity", 0)
    microseconds, run_id = cursors.read(wanted.text, cursor)
    try:
        return EPOCH + microseconds * MICROSECOND, run_id
    except OverflowError:
        raise FilterInvalid({"cursor": "names a time that does not exist"}) from None


def _behind(wanted: Filter, at: datetime, run_id: int) -> str:
    return cursors.written(wanted.text, (at - EPOCH) // MICROSECOND, run_id)
