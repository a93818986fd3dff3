"""Mutants of queue/bulk.py."""

from __future__ import annotations

from tests.mutants.mutant import at

BULK = [
    *at(
        "bulk.py",
        "change_many",
        ("a bulk change changes other runs too", "id = ANY(%(run_ids)s::bigint[]) AND ", ""),
        ("a bulk change changes runs that do not allow it", " AND {step.guard}", ""),
        ("a bulk change changes runs that no longer match", " AND {MATCHES}", ""),
        ("a bulk change waits for a locked run", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        (
            "a bulk change is not audited",
            "FROM changed JOIN matching ON matching.id = changed.id",
            "FROM changed JOIN matching ON false",
        ),
        (
            "a bulk change audits runs as each other",
            "FROM changed JOIN matching ON matching.id = changed.id",
            "FROM changed JOIN matching ON true",
        ),
    ),
    *at(
        "bulk.py",
        "bulk",
        ("a dry run changes runs", "if dry_run:", "if False:"),
    ),
    *at("bulk.py", "PAGES", ("a bulk change finds runs that do not allow it", ", action.guard)", ")")),
    *at(
        "bulk.py",
        "changed_of",
        ("a bulk change makes runs due and wakes nobody", "fetch_all(connection, WAKE_WORKERS)", "pass"),
    ),
    *at(
        "bulk.py",
        "_narrowed",
        ("a change of all runs needs no confirmation", "criteria.leaves_all_open and not everything", "False"),
    ),
    *at("bulk.py", "Action", ("a bulk change asks a run to cancel twice", " AND cancel_requested_at IS NULL", "")),
]
