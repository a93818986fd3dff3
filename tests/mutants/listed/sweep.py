"""Mutants of queue/sweep.py."""

from __future__ import annotations

from tests.mutants.mutant import at

SWEEP = at(
    "sweep.py",
    "SWEEP",
    ("queues that were not named are swept", "lanes.queue = ANY(%(queues)s::text[])", "true"),
    ("only open queues are swept", "WHERE lanes.run_at <= now()", "WHERE queues.name IS NULL"),
    ("sweeps wait for a locked row", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
    ("a lease ended by a sweep is not remembered", "history AS ({HISTORY})", "history AS (SELECT 1)"),
    ("a swept lease is another's too", "ON seen.id = expired.id", "ON true"),
    ("a sweep always begins anew", "= %(most)s ORDER BY", "< 0 ORDER BY"),
    (
        "a sweep looks at the same runs again",
        "(queue, priority, run_at, id)\n                >",
        "(queue, priority, run_at, id)\n                <>",
    ),
)
