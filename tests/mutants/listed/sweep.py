"""Mutants of queue/claims/sweep.py."""

from __future__ import annotations

from tests.mutants.mutant import at

SWEEP = [
    *at(
        "claims/sweep.py",
        "walk",
        ("queues that were not named are swept", "next.queue = ANY(%(queues)s::text[])", "true"),
        ("a sweep walks an open lane to its end", "least({OPEN_MOST}, %(most)s - {walked})", "%(most)s"),
        ("a sweep leaves a paused lane at its first run", "paused_at IS NOT NULL OR ", ""),
        ("a sweep leaves a limited lane at its first run", "max_running IS NOT NULL", "false"),
        ("a sweep leaves a lane that a deploy has limited", "OR %(declared)s::jsonb ? next.queue ", ""),
        ("a sweep reads the same runs again", "AND (run_at, id) > (next.after_run_at, next.after_id)", ""),
        ("a sweep leaves a lane without a run for this worker", "OR NOT bool_or(is_claimable)", ""),
        ("a sweep reports runs for other workers", "{CLAIMABLE} AS is_claimable", "true AS is_claimable"),
    ),
    *at(
        "claims/sweep.py",
        "SWEEP",
        ("sweeps wait for a locked row", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        ("a sweep has no limit", " AND lanes.walked < %(most)s", ""),
        ("a sweep leaves a lane in the middle", "WHERE lanes.has_more IS NOT TRUE AND ", "WHERE "),
    ),
]
