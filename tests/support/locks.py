"""Wait until another session waits for a lock."""

from __future__ import annotations

from rowcall.base import database
from tests.support.processes import wait_until

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def wait_for_a_waiting_session(url: str, sessions: int = 1) -> None:
    """Return when this many sessions of the database wait for a lock."""
    connection = database.connect(url)
    connection.autocommit = True  # within one transaction, pg_stat_activity would not change
    wait_until(lambda: database.fetch_value(connection, WAITING) >= sessions, "sessions wait for a lock")
    connection.close()
