"""One connection for many tests, because a new one costs more than what most tests do with it."""

from __future__ import annotations

import psycopg2

from rowcall.base import database
from rowcall.base.database import PgConnection


class KeptConnection:
    """Keeps a connection, and replaces it if a test has changed, broken or closed it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: PgConnection | None = None

    def clean(self) -> PgConnection:
        """Return a connection that is like a new one: without a transaction, settings, locks or other state."""
        if self._connection is None or not _cleaned(self._connection):
            self.close()
            self._connection = database.connect(self._url)
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


def _cleaned(connection: PgConnection) -> bool:
    """Whether the session could be cleaned; it cannot if it has ended."""
    changed = connection.autocommit or connection.isolation_level is not None or connection.cursor_factory is not None
    if connection.closed or changed:
        return False
    try:
        # psycopg2 would begin a transaction, in which this statement is refused.
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("DISCARD ALL")
        connection.autocommit = False
    except psycopg2.Error:
        return False
    del connection.notices[:], connection.notifies[:]
    return True
