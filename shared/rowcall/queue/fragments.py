"""The few pieces of SQL that several statements of the queue share.

Everything else is written out where it is used, so that each statement reads as one text.
"""

from __future__ import annotations

# Sent before a hot statement, in the same round trip and transaction.  Each of them reaches its rows by an index or by
# ctid, whatever the table's size; statistics that are old by a million rows must not talk the planner into reading
# the whole table, or into compiling a plan that runs for a millisecond.
BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL jit = off;"

# Many leases come as one JSON object, `run_id/lease_no` -> value, and are looked up row by row.  A join would say the
# same, but a planner that expects one row and gets a thousand joins them by trying every pair.
LEASE_KEY = "(run.id || '/' || run.lease_no)"

# One (queue, priority) after another, each found by one probe of job_runs_live: the number of lanes counts, never the
# number of rows in them.
LANES = """
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
)"""

# Every attempt that did not end in success is written here and nowhere else.  The statement around it names the
# attempts that it ends `ended`, with these columns.
HISTORY = """
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended"""
