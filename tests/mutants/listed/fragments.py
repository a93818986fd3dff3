"""Mutants of queue/fragments.py."""

from __future__ import annotations

from tests.mutants.mutant import at

HISTORY = at(
    "fragments.py",
    "HISTORY",
    (
        "history does not keep the stack",
        "error_type, error, stack, permanent, forensics\n    FROM ended",
        "error_type, error, NULL, permanent, forensics\n    FROM ended",
    ),
    (
        "history does not keep when the attempt started",
        "outcome, worker, started_at, error_type, error, stack, permanent, forensics\n    FROM ended",
        "outcome, worker, now(), error_type, error, stack, permanent, forensics\n    FROM ended",
    ),
)
