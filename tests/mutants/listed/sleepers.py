"""Mutants of queue/sleepers.py and of rowcall.wake: who is notified, and from when on a worker may rely on it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, at

IS_DUE = '"run_at OPERATOR(pg_catalog.<=) pg_catalog.now()"'
BASELINE = "migrations/rowcall_migrations/versions/0001_baseline.py"

SLEEPERS = [
    *at("enqueue.py", "IS_DUE", ("what is due later wakes a worker", IS_DUE, '"true"')),
    *at("enqueue.py", "IS_DUE", ("what is due wakes nobody", IS_DUE, '"false"')),
    *(
        Mutant(name, BASELINE, "WAKE", stands, instead)
        for name, stands, instead in (
            ("whoever keeps a snapshot notifies nobody", "OPERATOR(pg_catalog.<>) 'read committed' OR", "= '' OR"),
            ("a worker that is awake is notified", "sleeps_until OPERATOR(pg_catalog.>) pg_catalog.now() AND", ""),
            ("a worker of another type is notified", "AND run_type OPERATOR(pg_catalog.=) ANY(job_types)", ""),
            ("a worker of another queue is notified", "run_queue OPERATOR(pg_catalog.=) ANY(queues)", "true"),
            ("a worker of all queues is not notified", "queues IS NULL OR ", ""),
        )
    ),
    *at("sleepers.py", "HAVE_ENDED", ("a worker sleeps while others are open", ">= %(transaction)s::bigint", "> 0")),
    *at(
        "sleepers.py",
        "NEXT_TRANSACTION",
        ("a worker waits for one that has ended", "pg_snapshot_xmax", "pg_snapshot_xmin"),
    ),
]
