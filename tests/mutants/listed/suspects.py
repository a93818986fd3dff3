"""Mutants of queue/claims/suspects.py, and of what makes and clears a suspect."""

from __future__ import annotations

from tests.mutants.mutant import at

SUSPECTS = [
    *at("claims/lanes.py", "CLAIMABLE", ("suspects are claimed with the others", " AND suspect = 0", "")),
    *at(
        "claims/suspects.py",
        "CLAIM_SUSPECT",
        ("any run is a suspect", 'claimable=f"{SERVED} AND suspect > 0 AND', 'claimable=f"{SERVED} AND'),
        ("a suspect has neighbours always", " AND (suspect < {ALONE} OR %(alone)s)", ""),
        ("a suspect never runs alone", " OR %(alone)s", ""),
        ("suspects without a limit are left", '"OR due_lanes.max_running IS NULL"', '""'),
        ("of two suspects the urgent goes first, whatever their queues", '"run_at, id"', '"priority, run_at, id"'),
        ("a worker stands still for a queue that is full", "lanes_with_room.room > 0\n", "true\n"),
        ("a worker's own run keeps it from standing still", "AND holders.locked_by = %(worker)s", "AND false"),
        ("a worker stands still for a queue that others fill", " AND holders.locked_by = %(worker)s", ""),
        (
            "a worker stands still for what is not due",
            "AND run.suspect > 0 AND run.run_at <= now() AND {SERVED}",
            "AND run.suspect > 0 AND {SERVED}",
        ),
        (
            "a worker stands still for what it does not serve",
            "now() AND {SERVED}\n        ORDER",
            "now()\n        ORDER",
        ),
        ("a worker stands still for what is locked", "FOR UPDATE OF run SKIP LOCKED", ""),
    ),
    *at(
        "claims/suspects.py",
        "claim_suspect",
        ("a worker stands still for a suspect with neighbours", "waits=waiting >= ALONE", "waits=True"),
        ("a suspect behind a limit is not told of", "behind=waiting < ALONE", "behind=False"),
    ),
    *at("lease.py", "EXPIRED", ("a lease that ran out is forgotten", "suspect = run.suspect + 1, ", "")),
    *at(
        "finish.py",
        "CLEARED",
        ("an attempt that ended in order clears a suspect", "least(run.suspect, 1)", "0"),
        ("a run that nothing failed becomes a suspect", "least(run.suspect, 1)", "1"),
        ("a suspect is one for ever", " WHEN run.failed_at < now() - interval '1 hour' THEN 0", " WHEN false THEN 0"),
    ),
    *(
        mutant
        for place in ("FAIL", "GIVE_UP", "RELEASE", "SNOOZE", "CANCELLED")
        for mutant in at("finish.py", place, (f"{place} lets a suspect stay alone", "{CLEARED}, ", ""))
    ),
]
