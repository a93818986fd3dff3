"""Mutants of queue/claims/handover.py."""

from __future__ import annotations

from tests.mutants.mutant import at

HANDOVER = [
    *at(
        "claims/handover.py",
        "HAND_OVER",
        (
            "a run that is handed over keeps its worker's name",
            "locked_by = %(lease_keys)s::jsonb ->> {LEASE_KEY}, ",
            "",
        ),
        ("every run is handed over", "run.id = ANY(ARRAY(SELECT id FROM unlocked))", "true"),
    ),
    *at(
        "claims/handover.py",
        "BEGIN",
        ("a message begins other runs", "run.id = %(run_id)s AND ", ""),
        ("a message of an earlier lease begins a run", "run.lease_no = %(lease_no)s AND ", ""),
        ("a message takes a run from a worker that performs it", "AND %(leases)s::jsonb ? run.job_type", ""),
        ("a doubled message begins a run twice", "NOT starts_with(run.locked_by, '{CONSUMER}')", "true"),
        (
            "a beginning whose commit was not confirmed is lost",
            "%(repeated)s AND run.locked_by",
            "false AND run.locked_by",
        ),
        ("any consumer repeats a beginning", "%(repeated)s AND run.locked_by = %(consumer)s", "%(repeated)s"),
        ("a doubled message to the same consumer begins a run twice", "OR %(repeated)s AND", "OR"),
        ("a consumer does not take the lease over", "locked_by = %(consumer)s, started_at", "started_at"),
        (
            "a run that has begun keeps the lease of its message",
            "now() + (%(leases)s::jsonb ->> run.job_type)::float8 * interval '1 second'",
            "run.locked_until",
        ),
        ("a consumer does not know how long its run waited", "now() - run.run_at", "now() - now()"),
        ("a beginning does not report a request to cancel", "run.cancel_requested_at IS NOT NULL AS", "false AS"),
    ),
]
