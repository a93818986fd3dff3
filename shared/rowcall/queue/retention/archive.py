"""The archive table: pruned runs with their attempts and logs, in one partition for each month of creation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from psycopg2.errorcodes import LOCK_NOT_AVAILABLE

from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all, fetch_value, sqlstate_of
from rowcall.base.errors import ArchiveBusy, MonthNotArchived
from rowcall.queue.fragments import BY_INDEX, RUN_COLUMNS

# A part of the statement that prunes: it reads the runs, attempts and lines as they were before.  After
# a restore, a run may already be in the archive.
INTO_TABLE = f"""
    INSERT INTO rowcall.archived_runs ({RUN_COLUMNS}, attempts_ended, log)
    SELECT {RUN_COLUMNS}, (
        SELECT coalesce(jsonb_agg(to_jsonb(ended) ORDER BY ended.lease_no), '[]')
        FROM rowcall.job_attempts AS ended WHERE ended.run_id = run.id
    ), (
        SELECT coalesce(jsonb_agg(to_jsonb(logged) ORDER BY logged.line_no), '[]')
        FROM rowcall.run_logs AS logged WHERE logged.run_id = run.id
    )
    FROM rowcall.job_runs AS run WHERE id = ANY(ARRAY(SELECT id FROM pruned))
    ON CONFLICT (id, created_at) DO NOTHING"""

# Makes the months in which these runs were created, if they are missing.  The lock is that of the INSERT which follows:
# it waits for a session that is dropping a month, before the look.
MAKE_MONTHS = f"""{BY_INDEX} LOCK TABLE rowcall.archived_runs IN ROW EXCLUSIVE MODE;
SELECT rowcall.make_archive_month(month) FROM (
    SELECT DISTINCT date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month FROM rowcall.job_runs
    WHERE id = ANY(%(due)s::bigint[]) AND isfinite(created_at)
) AS months
WHERE to_regclass('rowcall.archived_runs_' || to_char(month, 'YYYY_MM')) IS NULL
"""

# The partitions, from PostgreSQL's catalogue; the number of rows is the planner's estimate, which is NULL until
# the first ANALYZE.
MONTHS = """
SELECT to_date(right(child.relname, 7), 'YYYY_MM') AS month, nullif(child.reltuples, -1)::bigint AS runs,
    pg_total_relation_size(child.oid) AS bytes
FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = 'rowcall.archived_runs'::regclass AND child.relname LIKE 'archived\\_runs\\_____\\___'
ORDER BY month
"""

# Months that ended at least this many months ago.  A month is kept until the newest of its runs is old enough.
OLD_MONTHS = f"""
SELECT month FROM ({MONTHS}) AS months
WHERE month + interval '1 month' <= (now() AT TIME ZONE 'UTC') - make_interval(months => %(keep)s) ORDER BY month
"""

# The lock is taken before the first SELECT of the transaction.  A session whose default isolation is higher than READ
# COMMITTED counts what there was at that SELECT, and would drop what others have archived since.  As in the function,
# the wait is short, because later readers queue behind the lock.
DROP_MONTH = """SET LOCAL lock_timeout = '1s'; LOCK TABLE ONLY rowcall.archived_runs IN ACCESS EXCLUSIVE MODE;
SELECT rowcall.drop_archive_month(%(month)s::date, %(expected)s::bigint)
"""


def make_months(connection: Connection, run_ids: Sequence[int]) -> None:
    """Make the partitions that these runs need."""
    fetch_all(connection, MAKE_MONTHS, {"due": list(run_ids)})


def months(connection: Connection) -> list[Row]:
    """Return the months in the archive, the oldest first: `month` (its first day), `runs` (about) and `bytes`."""
    return fetch_all(connection, MONTHS, {})


def old_months(connection: Connection, keep: int) -> list[date]:
    """Return the months that ended at least `keep` months ago, the oldest first."""
    return [row["month"] for row in fetch_all(connection, OLD_MONTHS, {"keep": keep})]


def drop_month(connection: Connection, month: date, expected: int | None = None) -> int:
    """Drop a month with its runs, and return how many there were; with `expected`, only if there are as many.

    Call this before anything else in a transaction.
    """
    try:
        with all_or_nothing(connection):
            dropped: int | None = fetch_value(connection, DROP_MONTH, {"month": month, "expected": expected})
    except Exception as error:
        if sqlstate_of(error) == LOCK_NOT_AVAILABLE:
            raise ArchiveBusy(month, "a transaction is reading the table") from None
        raise
    if dropped is None:
        raise MonthNotArchived(month)
    if dropped < 0:
        raise ArchiveBusy(month, "it no longer has exactly the runs that were exported")
    return dropped
