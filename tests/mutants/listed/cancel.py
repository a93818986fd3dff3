"""Mutants of queue/cancel.py."""

from __future__ import annotations

from tests.mutants.mutant import at

CANCEL = [
    *at(
        "cancel.py",
        "CANCEL",
        ("cancel changes other runs", "id = %(run_id)s AND ", ""),
        ("cancel in any status", " AND {IS_WAITING}", ""),
    ),
    *at("cancel.py", "CANCELLED_AT_ONCE", ("cancel sets no finish time", "finished_at = now()", "finished_at = NULL")),
    *at(
        "cancel.py",
        "ASK_TO_CANCEL",
        ("ask to cancel changes other runs", "id = %(run_id)s AND ", ""),
        ("ask to cancel in any status", " AND {IS_RUNNING}", ""),
    ),
    *at(
        "cancel.py",
        "ASKED",
        ("asking again changes the time of the first request", "coalesce(cancel_requested_at, now())", "now()"),
    ),
    *at(
        "cancel.py",
        "FORCE_CANCEL",
        ("force cancel changes other runs", "id = %(run_id)s AND ", ""),
        ("force cancel ends a later lease", " AND lease_no = %(lease_no)s", ""),
        ("force cancel in any status", " AND status IN {sources_of(Event.FORCE_CANCEL)}", ""),
        ("force cancel leaves the lease", ", locked_by = NULL, locked_until = NULL", ""),
        ("force cancel changes the time of the first request", "coalesce(run.cancel_requested_at, now())", "now()"),
        (
            "force cancel writes no history",
            "FROM forced JOIN held ON forced.id = held.id",
            "FROM forced JOIN held ON false",
        ),
    ),
]
