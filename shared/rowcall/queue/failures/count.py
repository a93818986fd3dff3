"""Count the failed attempts.

The history is written in the transaction that ends an attempt; counting it costs that transaction nothing.  One worker
at a time counts what is new, every ten seconds.
"""

from __future__ import annotations

from rowcall.base.database import PgConnection, all_or_nothing, fetch_all, fetch_value
from rowcall.queue.failures.attempts import GROUPED, KEPT, NOT_COUNTED
from rowcall.queue.fragments import IN_ORDER

# An attempt is dated when its last transaction begins, and is visible when that commits.  This is longer than the ten
# seconds for which a worker waits for the database.  An attempt that takes even longer is not counted.
SETTLED = "interval '20 seconds'"

# How many attempts one transaction counts, and how many of these follow each other.
BATCH = 10_000
BATCHES_MOST = 12

# How many errors one minute tells apart in each job type and queue; the others are counted together.
ERRORS_MOST = 10

# Only one worker counts at a time: it locks the row of the last tick, which the tick's update skips while it is locked.
LOCK = "SELECT id FROM rowcall.schedule_ticks FOR UPDATE SKIP LOCKED"

# Counts the next attempts, in the order in which they ended.
#
# attempts  Those that ended at the same time as the last one are included, because the next batch begins after it.
# placed    A minute may be counted in several batches: errors that it already counts separately stay separate, and new
#           ones are added while there is room, the most frequent first.
COUNT = f"""
WITH attempts AS MATERIALIZED ({NOT_COUNTED} AND ended_at < now() - {SETTLED}
    ORDER BY ended_at FETCH FIRST {BATCH} ROWS WITH TIES
), {GROUPED}, told AS (
    SELECT grouped.*, EXISTS (
        SELECT FROM rowcall.failure_counts AS known
        WHERE (known.minute, known.job_type, known.queue) = (grouped.minute, grouped.job_type, grouped.queue)
            AND (known.error_type, known.error_key) = (grouped.error_type, grouped.error_key)
    ) AS is_known, (
        SELECT count(*) FROM rowcall.failure_counts AS known
        WHERE (known.minute, known.job_type, known.queue) = (grouped.minute, grouped.job_type, grouped.queue)
            AND known.error_key <> ''
    ) AS known
    FROM grouped
), placed AS (
    SELECT told.*, is_known OR known + row_number() OVER (
        PARTITION BY minute, job_type, queue, is_known ORDER BY failures DESC, error_type, error_key
    ) <= {ERRORS_MOST} AS has_room
    FROM told
), written AS (
    INSERT INTO rowcall.failure_counts AS known
        (minute, job_type, queue, error_type, error_key, failures, last_at, run_id, lease_no)
    SELECT minute, job_type, queue, shown.error_type, shown.error_key, sum(failures), max(last_at),
        (array_agg(run_id ORDER BY last_at DESC))[1], (array_agg(lease_no ORDER BY last_at DESC))[1]
    FROM placed CROSS JOIN LATERAL (
        SELECT CASE WHEN has_room THEN error_type ELSE '' END AS error_type,
            CASE WHEN has_room THEN error_key ELSE '' END AS error_key
    ) AS shown
    GROUP BY minute, job_type, queue, shown.error_type, shown.error_key
    ON CONFLICT (minute, job_type, queue, error_type, error_key) DO UPDATE
    SET failures = known.failures + excluded.failures, last_at = excluded.last_at, run_id = excluded.run_id,
        lease_no = excluded.lease_no
)
SELECT count(*) FROM attempts
"""

# Primary key.
DELETE_OLD = f"""
WITH deleted AS (
    DELETE FROM rowcall.failure_counts WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM rowcall.failure_counts WHERE minute < now() - {KEPT}
        ORDER BY minute LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT count(*) AS deleted FROM deleted
"""


def count_failures(connection: PgConnection) -> int:
    """Count the new failed attempts, unless another worker is counting them; return how many."""
    counted = 0
    for _ in range(BATCHES_MOST):
        with all_or_nothing(connection):
            if not fetch_all(connection, LOCK):
                return counted
            batch: int = fetch_value(connection, IN_ORDER + COUNT)
        counted += batch
        if batch < BATCH:
            break
    return counted


def delete_old_counts(connection: PgConnection, batch: int) -> int:
    """Delete at most `batch` counts that are past their retention; return how many."""
    deleted: int = fetch_value(connection, IN_ORDER + DELETE_OLD, {"batch": batch})
    return deleted
