"""Mutants of queue/lease.py."""

from __future__ import annotations

from tests.mutants.mutant import at

LEASE = [
    *at(
        "lease.py",
        "OWN",
        ("a heartbeat renews a lease that has ended", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("a heartbeat renews another worker's lease", " AND run.locked_by = %(worker)s", ""),
    ),
    *at("lease.py", "UNLOCKED", ("a locked row blocks other heartbeats", " SKIP LOCKED", "")),
    *at(
        "lease.py",
        "HEARTBEAT",
        ("a heartbeat shortens a lease", "run.locked_until, now()", "now()"),
        ("a heartbeat does not report a request to cancel", "run.cancel_requested_at IS NOT NULL AS", "false AS"),
        ("a locked lease is reported as lost", "{OWN} AND run.id <> ALL", "false AND run.id <> ALL"),
        ("a locked lease is reported as renewed", "IS NOT NULL, false FROM", "IS NOT NULL, true FROM"),
        (
            "a renewed lease is reported as locked",
            "{OWN} AND run.id <> ALL(ARRAY(SELECT id FROM renewed))",
            "{OWN}",
        ),
    ),
    *at(
        "lease.py",
        "HELD",
        ("a step renews other leases", "id = %(run_id)s AND ", ""),
        ("a step renews a lease that has ended", "lease_no = %(lease_no)s AND ", ""),
        ("a step renews another worker's lease", " AND locked_by = %(worker)s", ""),
    ),
    *at(
        "lease.py",
        "RENEW",
        ("a step shortens a lease", "greatest(run.locked_until,", "greatest('-infinity',"),
        ("a step renews from the time of its start", "pg_catalog.clock_timestamp()", "pg_catalog.now()"),
        ("two steps wait for each other", " SKIP LOCKED", ""),
        ("a step does not hold its lease", "FOR SHARE", ""),
    ),
    *at(
        "lease.py",
        "SHOW_PROGRESS",
        ("progress overwrites what was saved", "coalesce(run.progress, '{{}}') || ", ""),
    ),
    *at(
        "lease.py",
        "SAVE",
        ("save writes to other runs", "run.id = %(run_id)s AND ", ""),
        ("save writes under a lease that has ended", "run.lease_no = %(lease_no)s AND ", ""),
        ("save writes under another worker's lease", " AND run.locked_by = %(worker)s", ""),
        ("save overwrites the progress", "coalesce(run.progress, '{{}}') || ", ""),
    ),
    *at(
        "lease.py",
        "EXPIRED",
        (
            "a run that was asked to cancel is queued again",
            "run.cancel_requested_at IS NOT NULL THEN '{Status.CANCELLED}'",
            "false THEN ''",
        ),
        (
            "a run is queued again after its last attempt",
            "run.attempts >= run.max_attempts THEN '{Status.DEAD}'",
            "false THEN ''",
        ),
        (
            "a run whose message was lost counts as failed",
            "WHEN {UNBEGUN} THEN '{Status.QUEUED}'",
            "WHEN false THEN ''",
        ),
        ("a lost message costs an attempt", "attempts = run.attempts - ({UNBEGUN})::integer, ", ""),
        ("a lost message makes its run a suspect", "(NOT {UNBEGUN})::integer", "1"),
        ("an expired lease stays in the row", "locked_by = NULL, locked_until = NULL, ", ""),
        ("a run with an expired lease goes first again", "ELSE now() END", "ELSE run.run_at END"),
        ("a run whose message was lost is due anew", "{OVER} OR {UNBEGUN} THEN run.run_at", "{OVER} THEN run.run_at"),
        (
            "an expired lease sets no error of its own",
            "error_type = CASE WHEN {UNBEGUN} THEN 'MessageLost' ELSE 'LeaseExpired' END, ",
            "",
        ),
    ),
    *at("lease.py", "UNBEGUN", ("a run that a consumer has begun counts as unbegun", "'{MESSAGE}'", "'c'")),
    *at("lease.py", "OVER", ("a run whose message was lost is over", " AND NOT {UNBEGUN}", "")),
    *at(
        "lease.py",
        "EXPIRED_ATTEMPT",
        (
            "history names another worker for an expired lease",
            "seen.worker, expired.started_at",
            "'somebody' AS worker, expired.started_at",
        ),
        (
            "the attempt of a lost message has the number before it",
            "starts_with(seen.worker, '{MESSAGE}')::integer",
            "0",
        ),
        ("history gives no reason for an expired lease", "expired.last_error AS error", "NULL AS error"),
    ),
    *at(
        "lease.py",
        "EXPIRE",
        ("the sweep ends other leases", "id = %(run_id)s AND ", ""),
        ("the sweep ends a later lease", "lease_no = %(lease_no)s AND ", ""),
        ("the sweep ends leases that have not expired", " AND locked_until < now()", ""),
    ),
    *at(
        "lease.py",
        "END_LEASES",
        ("an expired lease writes no history", "history AS ({HISTORY})", "history AS (SELECT 1)"),
        ("an expired lease is recorded for other runs too", "ON seen.id = expired.id", "ON true"),
    ),
]
