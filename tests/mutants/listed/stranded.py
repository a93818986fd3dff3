"""Mutants of queue/claims/stranded.py."""

from __future__ import annotations

from tests.mutants.mutant import at

STRANDED = at(
    "claims/stranded.py",
    "HELD",
    ("a run of another worker counts as held", " AND run.locked_by = %(worker)s", ""),
    ("a suspect of another worker counts as held", " AND locked_by = %(worker)s", ""),
    ("a lane is read from its start", "AND (run_at, id) >= (known.run_at, known.id)", ""),
)
