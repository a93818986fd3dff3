"""What a test looks at: runs as they are now."""

from __future__ import annotations

from rowcall.base.database import PgConnection, Row, fetch_all

# In the order in which they were asked for.
RUNS = "SELECT * FROM rowcall.job_runs ORDER BY id"


def all_runs(connection: PgConnection) -> list[Row]:
    """Every run that there is, whatever its status."""
    return fetch_all(connection, RUNS)
