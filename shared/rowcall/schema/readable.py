"""Whether a standby lets its role read runs now: the role has the rights, and replay has locked none of the tables."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_all

# Reads no row.  Replay keeps the leader's exclusive locks, for as long as it is paused.
READ = """SET LOCAL lock_timeout = '100ms';
SELECT run.payload, kept.payload FROM rowcall.job_runs AS run, ONLY rowcall.archived_runs AS kept LIMIT 0
"""


def check_readable(connection: Connection) -> None:
    """Raise the database's error if lists cannot be read."""
    fetch_all(connection, READ)
