"""Mutants of queue/views/created.py and lists.py."""

from __future__ import annotations

from tests.mutants.mutant import at

CREATED = [
    *at(
        "views/created.py",
        "BEGIN",
        ("a time's own runs are taken for earlier ones", "created_at < %(moment)s", "created_at <= %(moment)s"),
        ("the margin is ignored", " + %(margin)s * interval '1 second'", ""),
    ),
    *at(
        "views/lists.py",
        "ONCE",
        (
            "a bare run is listed beside its archived row",
            "archived OR pruned_at IS NULL OR NOT EXISTS",
            "true OR NOT EXISTS",
        ),
        ("a bare run without an archived row is not listed", "kept.id = scanned.id AND", "kept.id >= 0 OR"),
    ),
]
