"""Mutants of queue/finish.py."""

from __future__ import annotations

from rowcall.status import Event
from tests.mutants.mutant import at

ENDINGS = (Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.CANCELLED)
FENCE = {
    "on other runs": "run.id = %(run_id)s",
    "under a lease that is over": "run.lease_no = %(lease_no)s",
    "by another worker": "run.locked_by = %(worker)s",
}

FINISH = [
    *(
        mutant
        for event in ENDINGS
        for broken, guard in FENCE.items()
        for mutant in at("finish.py", "_ending", (f"{event} {broken}", guard, f"({guard} OR '{{event}}' = '{event}')"))
    ),
    *(
        mutant
        for event in ENDINGS
        for mutant in at(
            "finish.py",
            "_ending",
            (f"{event} is not remembered", "FROM ended )", f"FROM ended WHERE '{{event}}' <> '{event}' )"),
        )
    ),
    *at("finish.py", "_ending", ("a lease that ended is still held", "locked_by = NULL, locked_until = NULL, ", "")),
    *at(
        "finish.py",
        "SUCCEED",
        ("succeed under a lease that is over", "%(done)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("succeed by another worker", " AND run.locked_by = %(worker)s", ""),
        ("succeed without an end", "finished_at = now(),", "finished_at = NULL,"),
        ("succeed without a result", "result = nullif(%(done)s::jsonb -> {LEASE_KEY}, 'null'), ", ""),
    ),
    *at(
        "finish.py",
        "UNCLAIM",
        ("hand back under a lease that is over", "%(held)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("hand back by another worker", " AND run.locked_by = %(worker)s", ""),
        ("hand back keeps the attempt", "attempts = run.attempts - 1, ", ""),
    ),
    *at(
        "finish.py",
        "FAIL",
        ("fail without an attempt left", "run.attempts < run.max_attempts", "true"),
        ("fail without waiting", "now() + %(delay)s * interval '1 second'", "now()"),
        ("fail keeps no error", ", {_ERROR}", ""),
    ),
    *at(
        "finish.py",
        "GIVE_UP",
        ("give up without an end", "finished_at = now()", "finished_at = NULL"),
        ("give up keeps no error", ", {_ERROR}", ""),
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
        ("release keeps no error", ", {_ERROR}", ""),
    ),
    *at(
        "finish.py",
        "SNOOZE",
        ("snooze keeps the attempt", ", attempts = run.attempts - 1", ""),
        ("snooze without waiting", "run_at = %(until)s", "run_at = now()"),
    ),
    *at(
        "finish.py",
        "CANCELLED",
        ("cancelled without having been asked", "run.cancel_requested_at IS NOT NULL", "true"),
        ("cancelled without an end", "finished_at = now()", "finished_at = NULL"),
    ),
]
