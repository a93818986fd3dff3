"""Preview: how many runs an operation would change, and some of them.  It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.operations.actions import IS_MEANT
from rowcall.queue.operations.request import Requested
from rowcall.queue.views.filters import MATCHES
from rowcall.queue.views.lists import IN_ORDER, SCANS, IndexScan, parameters, scan_for, searched

# Counting stops after this many entries of an index.
COUNTED_MOST = 100_000

SAMPLES = 5

# job_runs_live, which contains the runs that have not ended, however many others there are.
UNFINISHED = IndexScan("live", "finished_at IS NULL", "queue, priority, run_at, id", "ASC")


def count_sql(scan: IndexScan) -> str:
    """Return a query that counts the runs that an action can change, and names some of them."""
    return f"""{IN_ORDER}
SELECT count(*) FILTER (WHERE matches) AS matched, count(*) < %(most)s AS counted_all,
    coalesce((array_agg(id) FILTER (WHERE matches))[1:{SAMPLES}], '{{}}') AS samples
FROM (
    SELECT id, {MATCHES} AND {IS_MEANT} AS matches FROM (
        SELECT * FROM rowcall.job_runs WHERE {scan.entries} ORDER BY {scan.order} LIMIT %(most)s
    ) AS scanned
) AS judged
"""


# Name of a scan -> the query that counts.
COUNTS = {scan.name: count_sql(scan) for scan in (*SCANS, UNFINISHED)}

SAMPLED = """
SELECT id, job_type, queue, status, run_at, error_type, created_at FROM rowcall.job_runs
WHERE id = ANY(%(run_ids)s::bigint[]) ORDER BY id DESC
"""


@dataclass(frozen=True)
class Preview:
    """How many runs match now, whether all were counted, and a few of them."""

    matched: int
    counted_all: bool
    samples: list[Row]


def preview(connection: Connection, requested: Requested, most: int = COUNTED_MOST) -> Preview:
    """Count the runs that the operation would change now."""
    values = {**parameters(requested.narrowed, 0, None, most), "action": requested.action.word}
    [row] = searched(connection, COUNTS[scan_of(requested).name], values)
    matched, counted_all = row["matched"], row["counted_all"]
    if requested.max_runs is not None and matched >= requested.max_runs:
        matched, counted_all = requested.max_runs, True
    samples = fetch_all(connection, SAMPLED, {"run_ids": row["samples"]})
    return Preview(matched, counted_all, samples)


def scan_of(requested: Requested) -> IndexScan:
    """Return the index that has the fewest other runs."""
    scan = scan_for(requested.narrowed)
    return UNFINISHED if scan.name == SCANS[0].name and requested.action.is_for_live_runs else scan
