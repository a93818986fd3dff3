"""Mutants of queue/claims/stranded.py."""

from __future__ import annotations

from tests.mutants.mutant import at

STRANDED = at(
    "claims/stranded.py",
    "HELD",
    ("what another worker has is held", " AND run.locked_by = %(worker)s", ""),
    ("a suspect that another worker has is held", " AND locked_by = %(worker)s", ""),
    ("a lane is looked through from its beginning", "AND (run_at, id) >= (known.run_at, known.id)", ""),
)
