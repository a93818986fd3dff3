"""Mutants of queue/views/created.py."""

from __future__ import annotations

from tests.mutants.mutant import at

CREATED = [
    *at(
        "views/created.py",
        "BEGIN",
        ("a time's own runs are taken for earlier ones", "created_at < %(moment)s", "created_at <= %(moment)s"),
        ("the margin is ignored", " + %(margin)s * interval '1 second'", ""),
    ),
]
