"""Mutants of queue/lease.py."""

from __future__ import annotations

from tests.mutants.mutant import at

LEASE = [
    *at(
        "lease.py",
        "OWN",
        ("a heartbeat keeps a lease that is over", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("a heartbeat keeps another worker's lease", " AND run.locked_by = %(worker)s", ""),
    ),
    *at("lease.py", "UNLOCKED", ("a locked row holds up the others", " SKIP LOCKED", "")),
    *at(
        "lease.py",
        "HEARTBEAT",
        ("a heartbeat shortens a lease", "run.locked_until, now()", "now()"),
        ("a heartbeat does not tell of cancelling", "run.cancel_requested_at IS NOT NULL AS", "false AS"),
        ("a locked lease is taken for a lost one", "{OWN} AND run.id <> ALL", "false AND run.id <> ALL"),
        ("a locked lease is taken for a renewed one", "IS NOT NULL, false FROM", "IS NOT NULL, true FROM"),
        (
            "a renewed lease is taken for a locked one",
            "{OWN} AND run.id <> ALL(ARRAY(SELECT id FROM renewed))",
            "{OWN}",
        ),
    ),
    *at(
        "lease.py",
        "HELD",
        ("a step keeps other leases", "id = %(run_id)s AND ", ""),
        ("a step keeps a lease that is over", "lease_no = %(lease_no)s AND ", ""),
        ("a step keeps another worker's lease", " AND locked_by = %(worker)s", ""),
    ),
    *at(
        "lease.py",
        "RENEW",
        ("a step shortens a lease", "greatest(run.locked_until,", "greatest('-infinity',"),
        ("a step renews from its beginning", "pg_catalog.clock_timestamp()", "pg_catalog.now()"),
        ("two steps wait for each other", " SKIP LOCKED", ""),
        ("a step does not keep its lease", "FOR SHARE", ""),
    ),
    *at(
        "lease.py",
        "SHOW_PROGRESS",
        ("showing progress forgets what was saved", "coalesce(run.progress, '{{}}') || ", ""),
    ),
    *at(
        "lease.py",
        "SAVE",
        ("something is saved for other runs", "run.id = %(run_id)s AND ", ""),
        ("something is saved under a lease that is over", "run.lease_no = %(lease_no)s AND ", ""),
        ("something is saved by another worker", " AND run.locked_by = %(worker)s", ""),
        ("saving forgets the progress", "coalesce(run.progress, '{{}}') || ", ""),
    ),
    *at(
        "lease.py",
        "EXPIRED",
        (
            "a run that was to stop goes on",
            "run.cancel_requested_at IS NOT NULL THEN '{Status.CANCELLED}'",
            "false THEN ''",
        ),
        (
            "a run goes on after its last lease",
            "run.attempts >= run.max_attempts THEN '{Status.DEAD}'",
            "false THEN ''",
        ),
        ("a lease that ran out stays in the row", "locked_by = NULL, locked_until = NULL, ", ""),
        ("a run whose lease ran out goes first again", "ELSE now() END", "ELSE run.run_at END"),
        ("a lease that ran out is no error of its own", "error_type = 'LeaseExpired', ", ""),
    ),
    *at(
        "lease.py",
        "EXPIRED_ATTEMPT",
        ("a lease that ran out is remembered as another's", "seen.worker", "'somebody' AS worker"),
        ("a lease that ran out is remembered without a reason", "expired.last_error AS error", "NULL AS error"),
    ),
    *at(
        "lease.py",
        "EXPIRE",
        ("the sweep ends other leases", "id = %(run_id)s AND ", ""),
        ("the sweep ends a later lease", "lease_no = %(lease_no)s AND ", ""),
        ("the sweep ends living leases", " AND locked_until < now()", ""),
    ),
    *at(
        "lease.py",
        "END_LEASES",
        ("a lease that was ended is not remembered", "history AS ({HISTORY})", "history AS (SELECT 1)"),
        ("a lease that ran out is another's too", "ON seen.id = expired.id", "ON true"),
    ),
]
