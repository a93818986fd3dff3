"""Mutants of queue/claims/suspects.py, and of what makes and clears a suspect."""

from __future__ import annotations

from tests.mutants.mutant import at

SUSPECTS = [
    *at("claims/lanes.py", "CLAIMABLE", ("suspects are claimed with other runs", " AND suspect = 0", "")),
    *at(
        "claims/suspects.py",
        "CLAIM_SUSPECT",
        ("any run counts as a suspect", 'claimable=f"{SERVED} AND suspect > 0 AND', 'claimable=f"{SERVED} AND'),
        ("a suspect always runs beside others", " AND (suspect < {ALONE} OR %(alone)s)", ""),
        ("a suspect never runs alone", " OR %(alone)s", ""),
        ("suspects of queues without a limit are not claimed", '"OR due_lanes.max_running IS NULL"', '""'),
        ("the more urgent suspect goes first, in any queue", '"run_at, id"', '"priority, run_at, id"'),
        ("a worker waits for a full queue", "lanes_with_room.room > 0\n", "true\n"),
        (
            "a worker does not wait for a queue that its own run fills",
            "AND holders.locked_by = %(worker)s",
            "AND false",
        ),
        ("a worker waits for a queue that others fill", " AND holders.locked_by = %(worker)s", ""),
        (
            "a worker waits for a run that is not due",
            "AND run.suspect > 0 AND run.run_at <= now() AND {SERVED}",
            "AND run.suspect > 0 AND {SERVED}",
        ),
        (
            "a worker waits for a run that it does not serve",
            "now() AND {SERVED}\n        ORDER",
            "now()\n        ORDER",
        ),
        ("a worker waits for a locked run", "FOR UPDATE OF run SKIP LOCKED", ""),
    ),
    *at(
        "claims/suspects.py",
        "claim_suspect",
        ("a worker waits for a suspect that may run beside others", "waits=waiting >= ALONE", "waits=True"),
        ("a suspect behind a limit is not reported", "behind=waiting < ALONE", "behind=False"),
    ),
    *at(
        "lease.py",
        "EXPIRED",
        ("an expired lease is not counted", "suspect = run.suspect + (NOT {UNBEGUN})::integer,", ""),
    ),
    *at(
        "finish.py",
        "CLEARED",
        ("a failed attempt clears a suspect", "least(run.suspect, 1)", "0"),
        ("a run without failures becomes a suspect", "least(run.suspect, 1)", "1"),
        (
            "a suspect stays one for ever",
            " WHEN run.failed_at < now() - interval '1 hour' THEN 0",
            " WHEN false THEN 0",
        ),
    ),
    *(
        mutant
        for place in ("FAIL", "GIVE_UP", "RELEASE", "SNOOZE", "CANCELLED")
        for mutant in at("finish.py", place, (f"{place} does not clear a suspect", "{CLEARED}, ", ""))
    ),
]
