"""Mutants of queue/claims/sweep.py."""

from __future__ import annotations

from tests.mutants.mutant import at

SWEEP = [
    *at(
        "claims/sweep.py",
        "walk",
        ("queues that were not named are swept", "next.queue = ANY(%(queues)s::text[])", "true"),
        ("a lane that claims take from is walked to its end", "least({OPEN_MOST}, %(most)s - {walked})", "%(most)s"),
        ("a paused lane is left at its first run", "paused_at IS NOT NULL OR ", ""),
        ("a limited lane is left at its first run", "max_running IS NOT NULL", "false"),
        ("a lane that a deploy has limited is left too", "OR %(declared)s::jsonb ? next.queue ", ""),
        ("a sweep looks at the same runs again", "AND (run_at, id) > (next.after_run_at, next.after_id)", ""),
        ("a lane is left where nothing is for this worker", "OR NOT bool_or(is_claimable)", ""),
        ("what is for another worker is told", "{CLAIMABLE} AS is_claimable", "true AS is_claimable"),
    ),
    *at(
        "claims/sweep.py",
        "SWEEP",
        ("sweeps wait for a locked row", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        ("a sweep has no bound", " AND lanes.walked < %(most)s", ""),
        ("a sweep leaves a lane in its midst", "WHERE lanes.has_more IS NOT TRUE AND ", "WHERE "),
    ),
]
