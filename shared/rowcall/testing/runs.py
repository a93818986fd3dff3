"""Reads runs, for tests."""

from __future__ import annotations

from rowcall.base.database import PgConnection, Row, fetch_all

# In the order in which they were enqueued.
RUNS = "SELECT * FROM rowcall.job_runs ORDER BY id"


def all_runs(connection: PgConnection) -> list[Row]:
    """Return all runs, in any status."""
    return fetch_all(connection, RUNS)
