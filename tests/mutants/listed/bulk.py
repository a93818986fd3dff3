"""Mutants of queue/bulk.py."""

from __future__ import annotations

from tests.mutants.mutant import at

BULK = [
    *at(
        "bulk.py",
        "change_many",
        ("of many others are changed too", "id = ANY(%(run_ids)s::bigint[]) AND ", ""),
        ("of many those are changed that it cannot happen to", " AND {step.guard}", ""),
        ("of many those are changed that match no more", " AND {MATCHES}", ""),
        ("changing many waits for who holds one", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        (
            "changing many is not audited",
            "FROM changed JOIN matching ON matching.id = changed.id",
            "FROM changed JOIN matching ON false",
        ),
        (
            "many are audited as each other",
            "FROM changed JOIN matching ON matching.id = changed.id",
            "FROM changed JOIN matching ON true",
        ),
    ),
    *at(
        "bulk.py",
        "bulk",
        ("a dry run changes", "if dry_run:", "if False:"),
    ),
    *at("bulk.py", "PAGES", ("what it cannot happen to is met", ", action.guard)", ")")),
    *at(
        "bulk.py",
        "changed_of",
        ("many that are due wake nobody", "fetch_all(connection, WAKE_WORKERS)", "pass"),
    ),
    *at(
        "bulk.py",
        "_narrowed",
        ("all are changed though nobody said so", "criteria.leaves_all_open and not everything", "False"),
    ),
    *at("bulk.py", "Action", ("who was asked is asked again", " AND cancel_requested_at IS NULL", "")),
]
