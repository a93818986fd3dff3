"""Mutants of queue/claims/claim_limited.py."""

from __future__ import annotations

from tests.mutants.mutant import at

LIMITED = at(
    "claims/claim_limited.py",
    "claim_limited_sql",
    ("two claims use one queue's places at the same time", "FOR UPDATE OF queues SKIP LOCKED", ""),
    ("limited claims wait for each other", "FOR UPDATE OF queues SKIP LOCKED", "FOR UPDATE OF queues"),
    ("a finished run keeps its place", " AND run.status = '{Status.RUNNING}'", ""),
    ("expired leases keep their places", "AND {LEASE_IS_OVER}", "AND false"),
    ("leases that have not expired lose their places", "AND {LEASE_IS_OVER}", ""),
    ("running runs do not count", "(SELECT count(*) FROM holders WHERE holders.name = due_lanes.queue)", "0"),
    ("running runs count in every queue", " WHERE holders.name = due_lanes.queue)", ")"),
    ("a limited claim takes runs that are not due", "AND run_at <= now() AND (run_at, id) >=", "AND (run_at, id) >="),
    ("a limited claim takes any run", "AND {claimable}", "AND status <> 'running'"),
    ("a limited claim takes the last due run first", "ORDER BY run_at, id\n", "ORDER BY run_at DESC, id DESC\n"),
    ("each priority has the whole limit", "WHERE position <= room", "WHERE true"),
    (
        "a limited claim lets urgent runs wait",
        "PARTITION BY queue ORDER BY priority, run_at, id",
        "PARTITION BY queue ORDER BY id",
    ),
    ("a limited claim takes more than requested", "ORDER BY {order} LIMIT %(limit)s", ""),
    (
        "a limited claim forgets a run that is still running",
        "WHERE holders.name = queues.name AND holders.id NOT",
        "WHERE holders.id NOT",
    ),
    (
        "a limited claim forgets a run that starts",
        "SELECT seen.id FROM seen WHERE seen.queue = queues.name AND",
        "SELECT seen.id FROM seen WHERE false AND",
    ),
    (
        "a claim does not report that another one was in the way",
        "max_running > 0 AND queue NOT IN",
        "false AND queue NOT IN",
    ),
)
