"""List the failed attempts behind the counts of a job type or an error, the newest first."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.failures.attempts import ellipsis, error_key, first_line
from rowcall.queue.fragments import IN_ORDER
from rowcall.queue.views.stats import EXAMINED_MOST
from rowcall.status import FAILURES, sql_list

# Reads at most EXAMINED_MOST entries of the index job_attempts_failed, so that it costs the same for any number of
# failures, and runs and attempts by their primary keys; OFFSET 0, because a hash join would read all of them.
#
# shown     One attempt more than asked for, which shows that there are more.
# examined  One row, so that a list without attempts says too whether all of them were examined.
ATTEMPTS_BEHIND = f"""
WITH lately AS MATERIALIZED (
    SELECT run_id, lease_no, ended_at, error_type,
        CASE WHEN %(error_key)s::text IS NOT NULL THEN {error_key("error")} END AS error_key
    FROM rowcall.job_attempts
    WHERE outcome IN {sql_list(FAILURES)} AND ended_at > now() - %(hours)s * interval '1 hour'
    ORDER BY ended_at DESC LIMIT {EXAMINED_MOST}
), shown AS MATERIALIZED (
    SELECT lately.run_id, lately.lease_no, run.job_type, run.queue, run.status
    FROM lately CROSS JOIN LATERAL (
        SELECT job_type, queue, status FROM rowcall.job_runs WHERE id = lately.run_id OFFSET 0
    ) AS run
    WHERE (%(job_type)s::text IS NULL OR run.job_type = %(job_type)s)
        AND (%(error_type)s::text IS NULL OR lately.error_type = %(error_type)s)
        AND (%(error_key)s::text IS NULL OR lately.error_key = %(error_key)s)
    ORDER BY lately.ended_at DESC, lately.run_id DESC LIMIT %(limit)s + 1
), examined AS (
    SELECT count(*) < {EXAMINED_MOST} AS complete FROM lately
)
SELECT shown.run_id, shown.lease_no, shown.job_type, shown.queue, shown.status, attempt.attempt, attempt.worker,
    attempt.started_at, attempt.ended_at, attempt.error_type,
    {first_line("attempt.error")} || {ellipsis("attempt.error")} AS error, examined.complete
FROM examined LEFT JOIN (
    shown CROSS JOIN LATERAL (
        SELECT attempt, worker, started_at, ended_at, error_type, error FROM rowcall.job_attempts
        WHERE (run_id, lease_no) = (shown.run_id, shown.lease_no) OFFSET 0
    ) AS attempt
) ON true
ORDER BY attempt.ended_at DESC, shown.run_id DESC
"""


@dataclass(frozen=True)
class Behind:
    """Some failed attempts, whether more of them match, and whether all failures of the period were examined."""

    attempts: list[Row]
    more: bool
    complete: bool


def attempts_behind(
    connection: Connection,
    hours: int,
    job_type: str | None = None,
    error_type: str | None = None,
    error_key: str | None = None,
    limit: int = 100,
) -> Behind:
    """Return the newest attempts that failed in the last `hours`, of this job type and error if they are given.

    `error_key` is that of a row of `list_failures`.  Only the newest EXAMINED_MOST failures are examined.
    """
    asked = {"hours": hours, "job_type": job_type, "error_type": error_type, "error_key": error_key, "limit": limit}
    rows = fetch_all(connection, IN_ORDER + ATTEMPTS_BEHIND, asked)
    complete: bool = rows[0]["complete"]
    attempts = [{name: value for name, value in row.items() if name != "complete"} for row in rows if row["run_id"]]
    return Behind(attempts[:limit], len(attempts) > limit, complete)
