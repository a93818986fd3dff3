"""Mutants of queue/operate.py, and the row that it locks first."""

from __future__ import annotations

from tests.mutants.mutant import at

OPERATE = [
    *at("operate.py", "RUN_NOW", ("run now changes other runs", "id = %(run_id)s AND ", "")),
    *at("operate.py", "CAN_RUN_NOW", ("run now in any status", "status IN {sources_of(Event.RUN_NOW)}", "true")),
    *at(
        "operate.py",
        "MADE_DUE",
        ("run now does not change the time", "run_at = now(), ", ""),
        ("run now resets the attempts", "run_at = now(), ", "run_at = now(), attempts = 0, "),
    ),
    *at("operate.py", "RESCHEDULE", ("reschedule changes other runs", "id = %(run_id)s AND ", "")),
    *at(
        "operate.py", "CAN_RESCHEDULE", ("reschedule in any status", "status IN {sources_of(Event.RESCHEDULE)}", "true")
    ),
    *at(
        "operate.py",
        "RESCHEDULED",
        ("reschedule ignores the time", "run_at = %(run_at)s::timestamptz", "run_at = now()"),
        ("reschedule resets the attempts", "updated_at = now()", "updated_at = now(), attempts = 0"),
    ),
    *at(
        "operate.py",
        "RETRIABLE",
        ("retry in any status", "status IN {sources_of(Event.RETRY)} AND ", ""),
        ("retry of a pruned run", " AND pruned_at IS NULL", ""),
    ),
    *at("operate.py", "RETRY", ("retry changes other runs", "id = %(run_id)s AND ", "")),
    *at(
        "operate.py",
        "RETRIED",
        ("retry keeps the attempts", "attempts = 0, ", ""),
        ("retry resets the lease number", "attempts = 0, ", "attempts = 0, lease_no = 0, "),
        ("retry does not change the time", "run_at = now(), ", ""),
        ("retry keeps the finish time", "finished_at = NULL, ", ""),
        ("retry keeps the request to cancel", ", cancel_requested_at = NULL", ""),
        ("retry keeps the error", "last_error = NULL, ", ""),
        ("retry keeps the progress", ", progress = NULL", ""),
    ),
    *at("views/inspect.py", "LOCK_RUN", ("the audit log has a state before another change", " FOR UPDATE OF run", "")),
    *at(
        "operate.py",
        "change",
        (
            "an operator's change is not audited",
            "record(connection, operator.who, event",
            "(connection, operator.who, event",
        ),
        ("a run that has changed since it was read is changed", "check_version(before, expected)", "pass"),
        ("an operator's change wakes nobody", "fetch_all(connection, WAKE_WORKERS)", "pass"),
    ),
]
