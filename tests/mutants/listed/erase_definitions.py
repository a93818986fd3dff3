"""Mutants of definitions/erase.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant


def erasing(place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Return mutants of one place of erasing definitions."""
    return [
        Mutant(name, "shared/rowcall/definitions/erase.py", place, stands, instead) for name, stands, instead in changes
    ]


ERASE_DEFINITIONS = [
    *erasing(
        "FIND",
        ("former payloads are not found", "OR EXISTS (", "OR false AND EXISTS ("),
        ("audit rows of runs are found as definitions'", "subject = 'definition' AND ", ""),
        ("former payloads before a change are not found", "before -> 'payload' @> %(payload)s::jsonb OR ", ""),
    ),
    *erasing(
        "UNAUDITED",
        ("payloads in the audit rows of runs go", "subject = 'definition' AND ", ""),
        ("payloads in the audit rows of other definitions go", "AND subject_id = %(definition_id)s ", ""),
        ("a payload before a change goes that does not match", "WHEN %(whole)s OR before", "WHEN true OR before"),
        ("a payload after a change goes that does not match", "WHEN %(whole)s OR after", "WHEN true OR after"),
        ("former payloads of an erased definition stay", "AND (%(whole)s OR before", "AND (before"),
    ),
    *erasing(
        "ERASE",
        ("a live definition is erased", "AND removed_at IS NOT NULL ", ""),
        ("a definition with another payload is erased", " AND payload @> %(payload)s::jsonb", ""),
        ("erasing waits for a locked definition", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
    ),
]
