"""List failures: how often each job type has failed with each error in the last hour, day and week."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.failures.attempts import GROUPED, NOT_COUNTED, ellipsis, error_key, first_line, masked
from rowcall.queue.fragments import IN_ORDER
from rowcall.queue.queues import COUNTED_MOST
from rowcall.queue.views.stats import LANE
from rowcall.status import Status

# How many attempts that are not counted yet a list adds to the counts, the newest first.
ADDED_MOST = 10_000

# The counts of a week, and the attempts after them.
#
# summed    The errors that are shown: those with the most attempts in the last hour, then in the last day.
# retrying  Their runs that are waiting for another attempt, among the first that are due now and the first due later.
# example   The newest attempt of each, by the primary key; none if its run was pruned or erased.  Its error is masked,
#           unless only * would be left, as for a KeyError.
FAILURES = f"""
WITH RECURSIVE {LANES}, attempts AS MATERIALIZED ({NOT_COUNTED}
    ORDER BY ended_at DESC LIMIT {ADDED_MOST}
), {GROUPED}, counts AS (
    SELECT minute, job_type, queue, error_type, error_key, failures, last_at
    FROM rowcall.failure_counts WHERE minute > now() - interval '7 days'
    UNION ALL
    SELECT minute, job_type, queue, error_type, error_key, failures, last_at
    FROM grouped WHERE minute > now() - interval '7 days'
), summed AS MATERIALIZED (
    SELECT job_type, error_type, error_key,
        coalesce(sum(failures) FILTER (WHERE minute > now() - interval '1 hour'), 0)::bigint AS last_hour,
        coalesce(sum(failures) FILTER (WHERE minute > now() - interval '1 day'), 0)::bigint AS last_day,
        sum(failures)::bigint AS last_week, min(minute) AS first_at, max(last_at) AS last_at
    FROM counts
    WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s) AND (%(queue)s::text IS NULL OR queue = %(queue)s)
    GROUP BY job_type, error_type, error_key
    ORDER BY last_hour DESC, last_day DESC, last_week DESC, last_at DESC, job_type, error_type, error_key
    LIMIT %(limit)s
), retrying AS (
    SELECT job_type, coalesce(error_type, '') AS error_type, {error_key("last_error")} AS error_key, count(*) AS runs
    FROM lanes CROSS JOIN LATERAL (
        (SELECT job_type, error_type, last_error, status {LANE} AND run_at <= now()
         ORDER BY run_at, id LIMIT {COUNTED_MOST})
        UNION ALL
        (SELECT job_type, error_type, last_error, status {LANE} AND run_at > now()
         ORDER BY run_at, id LIMIT {COUNTED_MOST})
    ) AS run
    WHERE status = '{Status.FAILED}' AND (%(queue)s::text IS NULL OR lanes.queue = %(queue)s)
    GROUP BY 1, 2, 3
)
SELECT summed.job_type, nullif(summed.error_type, '') AS error_type, summed.error_key, example.error,
    summed.last_hour, summed.last_day, summed.last_week, summed.first_at, summed.last_at, example.run_id,
    coalesce(retrying.runs, 0) AS retrying,
    (SELECT count(*) < {ADDED_MOST} FROM attempts) AS complete
FROM summed LEFT JOIN retrying USING (job_type, error_type, error_key) LEFT JOIN LATERAL (
    SELECT attempt.run_id,
        coalesce(nullif({masked("attempt.error")}, '*'), {first_line("attempt.error")})
            || {ellipsis("attempt.error")} AS error
    FROM (
        SELECT run_id, lease_no, last_at FROM rowcall.failure_counts AS counted
        WHERE counted.minute = date_trunc('minute', summed.last_at) AND counted.job_type = summed.job_type
            AND counted.error_type = summed.error_type AND counted.error_key = summed.error_key
            AND (%(queue)s::text IS NULL OR counted.queue = %(queue)s)
        UNION ALL
        SELECT run_id, lease_no, last_at FROM grouped
        WHERE grouped.job_type = summed.job_type AND grouped.error_type = summed.error_type
            AND grouped.error_key = summed.error_key AND (%(queue)s::text IS NULL OR grouped.queue = %(queue)s)
        ORDER BY last_at DESC LIMIT 1
    ) AS newest JOIN rowcall.job_attempts AS attempt USING (run_id, lease_no)
) AS example ON true
ORDER BY last_hour DESC, last_day DESC, last_week DESC, last_at DESC, job_type, summed.error_type, summed.error_key
"""


@dataclass(frozen=True)
class Failures:
    """The errors, the most frequent first.

    `complete` is false while so many attempts have failed lately that some of them are not counted yet.
    """

    errors: list[Row]
    complete: bool


def list_failures(
    connection: Connection, job_type: str | None = None, queue: str | None = None, limit: int = 50
) -> Failures:
    """Return the errors that made attempts fail in the last week, of this job type and queue if they are given."""
    asked = {"job_type": job_type, "queue": queue, "limit": limit}
    rows = fetch_all(connection, IN_ORDER + FAILURES, asked)
    errors = [{name: value for name, value in row.items() if name != "complete"} for row in rows]
    return Failures(errors, all(row["complete"] for row in rows))
