"""Mutants of queue/sleepers.py, and of enqueue's condition for waking a sleeping worker."""

from __future__ import annotations

from tests.mutants.mutant import at

IS_DUE = '"run_at OPERATOR(pg_catalog.<=) pg_catalog.now()"'

SLEEPERS = [
    *at("keys/insert.py", "IS_DUE", ("a run that is due later wakes a worker", IS_DUE, '"true"')),
    *at("keys/insert.py", "IS_DUE", ("a due run wakes nobody", IS_DUE, '"false"')),
    *at(
        "sleepers.py",
        "HAVE_ENDED",
        ("a worker sleeps while other transactions are open", ">= %(transaction)s::bigint", "> 0"),
    ),
    *at(
        "sleepers.py",
        "NEXT_TRANSACTION",
        ("a worker waits for a transaction that has ended", "pg_snapshot_xmax", "pg_snapshot_xmin"),
    ),
]
