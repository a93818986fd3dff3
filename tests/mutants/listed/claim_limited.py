"""Mutants of queue/claims/claim_limited.py."""

from __future__ import annotations

from tests.mutants.mutant import at

LIMITED = at(
    "claims/claim_limited.py",
    "claim_limited_sql",
    ("two claims use one queue's places at once", "FOR UPDATE OF queues SKIP LOCKED", ""),
    ("limited claims wait for each other", "FOR UPDATE OF queues SKIP LOCKED", "FOR UPDATE OF queues"),
    ("a run that has ended keeps its place", " AND run.status = '{Status.RUNNING}'", ""),
    ("leases that ran out keep their places", "AND {LEASE_IS_OVER}", "AND false"),
    ("leases still running are ended for their places", "AND {LEASE_IS_OVER}", ""),
    ("what runs does not count", "(SELECT count(*) FROM holders WHERE holders.name = due_lanes.queue)", "0"),
    ("what runs counts in every queue", " WHERE holders.name = due_lanes.queue)", ")"),
    ("under a limit runs not due are claimed", "AND run_at <= now() AND (run_at, id) >=", "AND (run_at, id) >="),
    ("under a limit anything is claimed", "AND {claimable}", "AND status <> 'running'"),
    ("under a limit the last due goes first", "ORDER BY run_at, id\n", "ORDER BY run_at DESC, id DESC\n"),
    ("each priority has the limit for itself", "WHERE position <= room", "WHERE true"),
    (
        "under a limit the urgent wait",
        "PARTITION BY queue ORDER BY priority, run_at, id",
        "PARTITION BY queue ORDER BY id",
    ),
    ("under a limit more is claimed than was asked for", "ORDER BY {order} LIMIT %(limit)s", ""),
    (
        "a run that still runs is forgotten",
        "WHERE holders.name = queues.name AND holders.id NOT",
        "WHERE holders.id NOT",
    ),
    (
        "a run that begins is forgotten",
        "SELECT seen.id FROM seen WHERE seen.queue = queues.name AND",
        "SELECT seen.id FROM seen WHERE false AND",
    ),
    ("nobody says that another claim was in the way", "max_running > 0 AND queue NOT IN", "false AND queue NOT IN"),
)
