"""Mutants of queue/finish.py."""

from __future__ import annotations

from rowcall.status import Event
from tests.mutants.mutant import at

ENDINGS = (Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.CANCELLED)

# What happens to the run if cancelling was not requested.
OTHERWISE = {
    "FAIL": "THEN '{Status.CANCELLED}' ELSE '{Status.FAILED}' END",
    "GIVE_UP": "THEN '{Status.CANCELLED}' ELSE '{Status.DEAD}' END",
    "RELEASE": "CASE WHEN {ASKED} THEN '{Status.CANCELLED}'",
    "SNOOZE": "THEN '{Status.CANCELLED}' ELSE '{Status.QUEUED}' END",
    "UNCLAIM": "THEN '{Status.CANCELLED}' ELSE '{Status.QUEUED}' END",
}

FINISH = [
    *(
        mutant
        for place, stands in OTHERWISE.items()
        for mutant in at(
            "finish.py",
            place,
            (f"{place} ignores a request to cancel", stands, stands.replace("CANCELLED", "DEAD")),
        )
    ),
    *(
        mutant
        for event in ENDINGS
        for mutant in at(
            "finish.py",
            event.name,
            (f"{event} on other runs", "run.id = %(run_id)s AND ", ""),
            (f"{event} under a lease that has ended", "run.lease_no = %(lease_no)s AND ", ""),
            (f"{event} by another worker", " AND run.locked_by = %(worker)s", ""),
            (f"{event} leaves the lease in the row", "locked_by = NULL, locked_until = NULL, ", ""),
            (f"{event} writes no history", "history AS ({HISTORY})", "history AS (SELECT 1)"),
        )
    ),
    *at(
        "finish.py",
        "SUCCEED",
        ("succeed under a lease that has ended", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("succeed by another worker", " AND run.locked_by = %(worker)s", ""),
        ("succeed without a finish time", "finished_at = now(),", "finished_at = NULL,"),
        ("succeed without a result", "result = nullif(%(lease_keys)s::jsonb -> {LEASE_KEY}, 'null'), ", ""),
    ),
    *at(
        "finish.py",
        "UNCLAIM",
        (
            "unclaim takes rows that others have locked",
            "ANY(ARRAY(SELECT id FROM unlocked))",
            "ANY(%(run_ids)s::bigint[])",
        ),
        ("unclaim keeps the attempt", "attempts = run.attempts - 1, ", ""),
    ),
    *at(
        "finish.py",
        "FAIL",
        ("fail without an attempt left", " AND run.attempts < run.max_attempts", ""),
        ("fail without waiting", "ELSE now() + %(delay)s * interval '1 second'", "ELSE now()"),
        (
            "a run to be cancelled waits for its retry",
            "CASE WHEN {ASKED} THEN run.run_at ELSE now()",
            "CASE WHEN false THEN run.run_at ELSE now()",
        ),
        ("fail stores no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "GIVE_UP",
        ("give up sets no finish time", "finished_at = now()", "finished_at = NULL"),
        ("give up stores no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "RELEASE",
        (
            "release after the last attempt",
            "WHEN run.attempts < run.max_attempts THEN '{Status.QUEUED}'",
            "WHEN true THEN '{Status.QUEUED}'",
        ),
        ("release sets no finish time", "run.attempts >= run.max_attempts THEN now() END", "false THEN now() END"),
        ("release stores no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "SNOOZE",
        ("a run that the broker has not taken is put off", " OR %(pause)s::float8 IS NULL", ""),
        ("snooze keeps the attempt", ", attempts = run.attempts - 1", ""),
        ("snooze without waiting", "ELSE greatest(%(until)s::timestamptz, now()", "ELSE greatest(now(), now()"),
        (
            "snooze without a pause",
            "greatest(%(until)s::timestamptz, now() + %(pause)s * interval '1 second')",
            "%(until)s::timestamptz",
        ),
        ("snooze deletes other attempts from the history", "earlier.outcome = '{Event.SNOOZE}'", "true"),
        ("each snooze adds a row to the history", "earlier.run_id = ended.run_id", "false"),
        ("snooze is recorded as the attempt before", "run.attempts + 1 AS attempt", "run.attempts AS attempt"),
    ),
    *at(
        "finish.py",
        "CANCELLED",
        ("cancelled without a request", " AND {ASKED}", ""),
        ("cancelled without a finish time", "finished_at = now()", "finished_at = NULL"),
    ),
]
