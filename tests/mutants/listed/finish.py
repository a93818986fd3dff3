"""Mutants of queue/finish.py."""

from __future__ import annotations

from rowcall.status import Event
from tests.mutants.mutant import at

ENDINGS = (Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.CANCELLED)

FINISH = [
    *(
        mutant
        for event in ENDINGS
        for mutant in at(
            "finish.py",
            event.name,
            (f"{event} on other runs", "run.id = %(run_id)s AND ", ""),
            (f"{event} under a lease that is over", "run.lease_no = %(lease_no)s AND ", ""),
            (f"{event} by another worker", " AND run.locked_by = %(worker)s", ""),
            (f"{event} leaves the lease in the row", "locked_by = NULL, locked_until = NULL, ", ""),
            (f"{event} is not remembered", "history AS ({HISTORY})", "history AS (SELECT 1)"),
        )
    ),
    *at(
        "finish.py",
        "SUCCEED",
        ("succeed under a lease that is over", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("succeed by another worker", " AND run.locked_by = %(worker)s", ""),
        ("succeed without an end", "finished_at = now(),", "finished_at = NULL,"),
        ("succeed without a result", "result = nullif(%(lease_keys)s::jsonb -> {LEASE_KEY}, 'null'), ", ""),
    ),
    *at(
        "finish.py",
        "UNCLAIM",
        ("unclaim under a lease that is over", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("unclaim by another worker", " AND run.locked_by = %(worker)s", ""),
        ("unclaim keeps the attempt", "attempts = run.attempts - 1, ", ""),
    ),
    *at(
        "finish.py",
        "FAIL",
        ("fail without an attempt left", " AND run.attempts < run.max_attempts", ""),
        ("fail without waiting", "now() + %(delay)s * interval '1 second'", "now()"),
        ("fail keeps no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "GIVE_UP",
        ("give up without an end", "finished_at = now()", "finished_at = NULL"),
        ("give up keeps no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "RELEASE",
        (
            "release after the last attempt",
            "CASE WHEN run.attempts < run.max_attempts THEN '{Status.QUEUED}'",
            "CASE WHEN true THEN '{Status.QUEUED}'",
        ),
        ("release without an end", "ELSE now() END", "ELSE NULL END"),
        ("release keeps no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "SNOOZE",
        ("snooze keeps the attempt", ", attempts = run.attempts - 1", ""),
        ("snooze without waiting", "run_at = %(until)s", "run_at = now()"),
        ("snooze is remembered as the attempt before", "run.attempts + 1 AS attempt", "run.attempts AS attempt"),
    ),
    *at(
        "finish.py",
        "CANCELLED",
        ("cancelled without having been asked", " AND run.cancel_requested_at IS NOT NULL", ""),
        ("cancelled without an end", "finished_at = now()", "finished_at = NULL"),
    ),
]
