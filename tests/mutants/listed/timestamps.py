"""Mutants of base/timestamps.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TIMESTAMPS = [
    Mutant(name, "shared/rowcall/base/timestamps.py", "unusable", stands, "if False:")
    for name, stands in (
        ("times without offset are taken", "if moment.tzinfo is None:"),
        ("times of any year are taken", "if moment.year not in YEARS:"),
    )
]
