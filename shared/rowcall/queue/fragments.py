"""Pieces of SQL that several statements of the queue share.

Everything else is written out where it is used, so that each statement reads as one text.
"""

from __future__ import annotations

# Sent before a hot statement, in the same round trip and transaction.  These statements reach their rows by an index or
# by ctid, whatever the table's size.  Outdated statistics must not make the planner read the whole table, or
# JIT-compile a plan that runs for only a millisecond.
BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL jit = off;"

# Sent before a statement that reads the first rows of an index's range in the index's order, without sorting: with
# outdated statistics, the planner would also read all the rows behind them.
IN_ORDER = f"{BY_INDEX} SET LOCAL enable_bitmapscan = off;"

# Many leases are passed as one JSON object, `run_id/lease_no` -> value, and are looked up row by row.  A join would be
# equivalent, but a planner that expects one row and gets a thousand would try every pair.
LEASE_KEY = "(run.id || '/' || run.lease_no)"

# Only this fragment writes attempts that did not succeed.  The surrounding statement provides them as the CTE `ended`,
# with these columns.
HISTORY = """
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended"""

# The columns that job_runs and archived_runs share.
RUN_COLUMNS = """id, definition_id, scheduled_for, job_type, payload, queue, priority, run_at, status, attempts,
        max_attempts, lease_no, locked_by, locked_until, cancel_requested_at, suspect, natural_key, unique_mode,
        held_key, content_fingerprint, idempotency_key, key_owner, request_fingerprint, last_error, error_type,
        failed_at, last_stack, progress, result, trace_parent, created_by, started_at, finished_at, created_at,
        updated_at, pruned_at"""

# Every run, in the archive or not; a run that left a bare row is in both tables.  Not a view, because
# PostgreSQL refuses to change the type of a column that a view reads.
FROM_ALL_RUNS = f"""FROM (
        SELECT {RUN_COLUMNS}, false AS archived FROM rowcall.job_runs
        UNION ALL
        SELECT {RUN_COLUMNS}, true FROM rowcall.archived_runs
    ) AS run"""

# A notification, sent with the commit that makes something due, so that idle workers claim at once.
CHANNEL = "rowcall_due"

# Part of a statement that makes a run due.  PostgreSQL sends equal notifications of one transaction only once.  For
# runs that are due now; for later ones, workers wake by the clock.  Schema-qualified, because callers have their own
# search_path.
WAKE = f"pg_catalog.pg_notify('{CHANNEL}', '')"

# The notification as a separate statement, after one that made something due.
WAKE_WORKERS = f"SELECT {WAKE}"
