"""Mutants of queue/run_log.py."""

from __future__ import annotations

from tests.mutants.mutant import at

RUN_LOG = [
    *at(
        "run_log.py",
        "LOCK_OWNED",
        ("the run's row is not locked before its lines are written", "FOR NO KEY UPDATE", ""),
    ),
    *at(
        "run_log.py",
        "WRITE_LOG",
        (
            "lines are written under a lease that has ended",
            "jsonb_array_elements(%(log)s::jsonb -> {LEASE_KEY}) AS line",
            "jsonb_path_query(%(log)s::jsonb, '$.*[*]') AS line",
        ),
        ("lines are written by another worker", " AND run.locked_by = %(worker)s", ""),
        ("the next attempt begins a new log", "coalesce(newest.line_no - newest.written, 0) + ", ""),
        (
            "a write that is repeated adds its lines again",
            "CASE WHEN last.lease_no = owned.lease_no THEN last.lease_line_no ELSE 0 END",
            "0",
        ),
        (
            "lines of the next attempt count as written",
            "CASE WHEN last.lease_no = owned.lease_no THEN last.lease_line_no ELSE 0 END",
            "last.lease_line_no",
        ),
        ("a line has the time at which it was written", " - sent.age * interval '1 second'", ""),
        ("a log has any number of lines", "lines > {LINES_MOST} OR ", ""),
        ("a log has any number of bytes", " OR bytes > {BYTES_MOST}", ""),
        ("the oldest lines are kept", "ORDER BY line_no DESC) )", "ORDER BY line_no) )"),
        ("the logs of several runs share one limit", "PARTITION BY run_id ", ""),
    ),
]
