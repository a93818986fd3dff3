"""A database in which `rowcall doctor` finds nothing wrong."""

from __future__ import annotations

from rowcall.base import database
from tests.support.processes import rowcall


def well_kept(environment: dict[str, str]) -> dict[str, str]:
    """Apply the code's definitions to the database of this environment, as if a worker had just ticked."""
    assert rowcall(environment, "migrate").returncode == 0
    with database.transaction(environment["DATABASE_URL"]) as connection:
        database.fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now()")
    return {**environment, "ROWCALL_API_PORT": "0"}
