"""A gate in the database, at which a worker's write waits, in the server, until the test opens it.

A test cannot see what a worker does between two statements.  But while a statement waits at the gate, the test knows
exactly what has been done and what has not, and can kill or freeze the worker there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowcall.base import database
from rowcall.base.database import PgConnection
from tests.support.processes import wait_until

# Advisory locks are per database, and nothing else takes this one in a test's database.
LOCK = 4711

BUILD = f"""
DROP FUNCTION IF EXISTS wait_at_gate() CASCADE;
CREATE SEQUENCE IF NOT EXISTS writes MINVALUE -1000;
SELECT setval('writes', %(before)s);
CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_LEVEL = 'ROW' OR nextval('writes') = 0 THEN
        -- The tests do not concern a worker's timeouts for locks.
        PERFORM set_config('lock_timeout', '0', true);
        PERFORM pg_advisory_xact_lock_shared({LOCK});
    END IF;
    RETURN NEW;
END $$;
"""

WAITING = f"""
SELECT pid FROM pg_locks
WHERE locktype = 'advisory' AND objid = {LOCK} AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class Gate:
    """The gate of one database; it is open until a test calls one of the hold methods."""

    def __init__(self, connection: PgConnection) -> None:
        self._connection = connection

    def hold_change(self, when: str, table: str = "job_runs") -> None:
        """Hold an update of a run, or of another table's row, that meets this SQL condition on NEW and OLD."""
        self._close(f"TRIGGER gate BEFORE UPDATE ON rowcall.{table} FOR EACH ROW WHEN ({when})")

    def hold_commit(self, table: str) -> None:
        """Hold the commit of a transaction that has inserted into this table."""
        self._close(
            f"CONSTRAINT TRIGGER gate AFTER INSERT ON rowcall.{table} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        )

    def hold_write(self, number: int) -> None:
        """Hold the write to job_runs with this number, counted from now."""
        self._close("TRIGGER gate AFTER UPDATE ON rowcall.job_runs FOR EACH STATEMENT", before=-number)

    def wait(self) -> None:
        """Return as soon as a statement waits at the gate."""
        wait_until(lambda: self._sql(WAITING), "a statement waits at the gate")

    def open(self) -> None:
        """Let everything through, until a hold method is called again."""
        self._sql("SELECT pg_advisory_unlock_all()")

    def turn_away(self) -> None:
        """End the connection that waits at the gate, as the server does when it notices that a client is dead."""
        self._sql(f"SELECT pg_terminate_backend(pid) FROM ({WAITING}) AS waiting")
        wait_until(lambda: not self._sql(WAITING), "nothing waits at the gate")
        self.open()

    def _close(self, trigger: str, before: int = 0) -> None:
        """Close the gate, and move it to this trigger."""
        self._sql(f"SELECT pg_advisory_lock({LOCK})")
        self._sql(f"{BUILD} CREATE {trigger} EXECUTE FUNCTION wait_at_gate()", before=before)

    def _sql(self, statement: str, **parameters: object) -> list[database.Row]:
        return database.fetch_all(self._connection, statement, parameters)


@contextmanager
def gate(url: str) -> Iterator[Gate]:
    """Yield a gate in this database, and open it at the end of the block."""
    connection = database.connect(url)
    connection.autocommit = True
    try:
        yield Gate(connection)
    finally:
        connection.close()
