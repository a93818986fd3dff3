"""Mutants of queue/timestamps.py."""

from __future__ import annotations

from tests.mutants.mutant import at

TIMESTAMPS = at(
    "timestamps.py",
    "unusable",
    ("times without offset are taken", "if moment.tzinfo is None:", "if False:"),
    ("times of any year are taken", "if moment.year not in YEARS:", "if False:"),
)
