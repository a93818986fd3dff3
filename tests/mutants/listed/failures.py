"""Mutants of queue/failures/."""

from __future__ import annotations

from tests.mutants.mutant import at

FAILURES = [
    *at(
        "failures/attempts.py",
        "NOT_COUNTED",
        ("snoozes count as failures", "outcome IN {sql_list(FAILURES)} AND ", ""),
        ("attempts are counted again", "greatest({COUNTED_UNTIL}, now() - {KEPT})", "now() - {KEPT}"),
        ("old attempts are counted", "greatest({COUNTED_UNTIL}, now() - {KEPT})", "{COUNTED_UNTIL}"),
    ),
    *at(
        "failures/count.py",
        "LOCK",
        ("counting waits for another worker", " FOR UPDATE SKIP LOCKED", " FOR UPDATE NOWAIT"),
    ),
    *at(
        "failures/count.py",
        "COUNT",
        ("attempts that may not be committed are counted", " AND ended_at < now() - {SETTLED}", ""),
        ("attempts at the end of a batch are lost", "ROWS WITH TIES", "ROWS ONLY"),
        ("a part of a minute forgets the errors before", "is_known OR known + row_number()", "row_number()"),
        ("a later count replaces an earlier one", "known.failures + excluded.failures", "excluded.failures"),
    ),
]
