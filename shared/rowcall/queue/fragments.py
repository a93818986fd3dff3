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

# Every attempt that did not end in success is written here and nowhere else.  The statement around it names the
# attempts that it ends `ended`, with these columns.
HISTORY = """
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended"""

# A notification, sent with the commit that made something due, that lets idle workers claim at once.
CHANNEL = "rowcall_due"

# Part of the statement that makes a run due.  PostgreSQL sends equal notifications of one transaction once.  Only for
# runs that are due now: workers wake by the clock for later ones.  Written out, because callers enqueue under
# search_paths of their own.
WAKE = f"pg_catalog.pg_notify('{CHANNEL}', '')"

# The same as a statement of its own, behind one that made something due.
WAKE_WORKERS = f"SELECT {WAKE}"
