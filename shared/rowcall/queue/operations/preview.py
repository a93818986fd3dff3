"""Preview: how many runs an operation would change, and some of them.  It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.operations.actions import IS_MEANT
from rowcall.queue.operations.request import Requested
from rowcall.queue.views.filters import MATCHES_BESIDES_KEY
from rowcall.queue.views.lists import IN_ORDER, SCANS, SECONDS, IndexScan, parameters, scan_for, searched

# Counting stops after this many entries of an index.
COUNTED_MOST = 100_000

SAMPLES = 5

# job_runs_live, which contains the runs that have not ended, however many others there are.
UNFINISHED = IndexScan("live", "finished_at IS NULL", "queue, priority, run_at, id", SCANS[0].listed)


def count_sql(scan: IndexScan) -> str:
    """Return a query that counts the runs that an action can change, and names some of them.

    The runs are taken in the operation's order, so with `max_runs` the counts are of those that would be changed.
    """
    return f"""{IN_ORDER}
SELECT matched, counted_all, ids[1:least({SAMPLES}, %(max_runs)s)] AS samples, by_status, unresolved
FROM (
    SELECT count(*) FILTER (WHERE matches) AS matched, count(*) < %(most)s AS counted_all,
        array_agg(id ORDER BY {scan.listed}) FILTER (WHERE matches) AS ids,
        array_agg(status ORDER BY {scan.listed}) FILTER (WHERE matches) AS statuses
    FROM (
        SELECT id, created_at, status, {MATCHES_BESIDES_KEY} AND {IS_MEANT} AS matches FROM (
            SELECT * FROM rowcall.job_runs WHERE {scan.entries} ORDER BY {scan.order} LIMIT %(most)s
        ) AS scanned
    ) AS judged
) AS counted CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(status, runs), '{{}}') AS by_status,
        coalesce(sum(unresolved_runs), 0)::bigint AS unresolved
    FROM (
        SELECT status, count(*) AS runs,
            count(*) FILTER (WHERE id = ANY(%(unresolved)s::bigint[])) AS unresolved_runs
        FROM unnest(ids, statuses) WITH ORDINALITY AS met(id, status, place)
        WHERE place <= %(max_runs)s GROUP BY status
    ) AS grouped
) AS divided
"""


# Name of a scan -> the query that counts.
COUNTS = {scan.name: count_sql(scan) for scan in (*SCANS, UNFINISHED)}

# IN_ORDER lasts until the transaction ends: without sorting, all runs would be read in the order of an index.
SAMPLED = """SET LOCAL enable_sort = on; SET LOCAL enable_incremental_sort = on;
SELECT id, job_type, queue, status, run_at, error_type, created_at FROM rowcall.job_runs
WHERE id = ANY(%(run_ids)s::bigint[]) ORDER BY array_position(%(run_ids)s::bigint[], id)
"""


@dataclass(frozen=True)
class Preview:
    """How many runs match now, in which statuses, whether all were counted, a few of them, and how many are unresolved.

    With `max_runs`, all but `left_out` describe the newest of them, which the operation would change.
    """

    matched: int
    left_out: int
    counted_all: bool
    by_status: dict[str, int]
    samples: list[Row]
    unresolved: int | None = None


def preview(
    connection: Connection,
    requested: Requested,
    most: int = COUNTED_MOST,
    unresolved: Sequence[int] | None = None,
    *,
    seconds: float = SECONDS,
) -> Preview:
    """Count the runs that the operation would change now, and how many of them are among the `unresolved` ones."""
    values = {
        **parameters(connection, requested.narrowed, 0, None, most, seconds=seconds),
        "action": requested.action.word,
        "max_runs": requested.max_runs or most,
        "unresolved": list(unresolved or ()),
    }
    [row] = searched(connection, COUNTS[scan_of(requested).name], values, seconds)
    matched = min(row["matched"], values["max_runs"])
    samples = fetch_all(connection, SAMPLED, {"run_ids": row["samples"] or []})
    return Preview(
        matched,
        row["matched"] - matched,
        row["counted_all"],
        row["by_status"],
        samples,
        None if unresolved is None else row["unresolved"],
    )


def scan_of(requested: Requested) -> IndexScan:
    """Return the scan of the index that contains the fewest other runs."""
    scan = scan_for(requested.narrowed)
    return UNFINISHED if scan.name == SCANS[0].name and requested.action.is_for_live_runs else scan
