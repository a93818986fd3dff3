"""Mutants of queue/retention/erase.py."""

from __future__ import annotations

from tests.mutants.mutant import at

ERASED = "WHERE run_id = ANY(ARRAY(SELECT id FROM finished))"

ERASE = [
    *at(
        "retention/erase.py",
        "BY_ID",
        ("all runs are named instead of some", "WHERE id = ANY(%(run_ids)s::bigint[]) ", ""),
    ),
    *at(
        "retention/erase.py",
        "ERASE",
        ("runs that have not finished are erased", " AND finished_at IS NOT NULL", ""),
        ("other runs are erased", "id = ANY(%(run_ids)s::bigint[]) AND finished_at", "finished_at"),
        ("erasing waits for a locked run", "FOR UPDATE OF run SKIP LOCKED", "FOR UPDATE OF run"),
        ("what is archived meanwhile is said to be erased", " AND run.updated_at = seen.updated_at", ""),
        (
            "the archive keeps what is erased",
            "WHERE id = ANY(ARRAY(SELECT id FROM archived)) RETURNING",
            "WHERE false RETURNING",
        ),
        ("other archived runs are erased", "WHERE id = ANY(ARRAY(SELECT id FROM archived)) RETURNING", "RETURNING"),
        ("attempts of erased archived runs are kept", "attempts_ended = '[]', ", ""),
        ("lines of erased archived runs are kept", ", log = '[]'", ""),
        ("attempts of erased runs are kept", ERASED, "WHERE false"),
        ("attempts of runs that are not erased go", ERASED, "WHERE true"),
        ("payloads before a change stay in the audit log", "before = before - 'payload', ", ""),
        ("payloads after a change stay in the audit log", ", after = after - 'payload'", ""),
        ("payloads in other runs' audit rows go", "AND subject_id = ANY(ARRAY(SELECT id FROM all_finished))", ""),
        ("payloads in the audit rows of definitions go", "subject = 'run' AND ", ""),
    ),
]
