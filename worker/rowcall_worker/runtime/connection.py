"""One thread's connection: made when needed, dropped when lost, tried again a little later each time."""

from __future__ import annotations

import threading

import psycopg2

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import DatabaseUnreachable
from rowcall.base.logs import LogEvent, log

# Wait this long after the first failure, twice as long after each further one.
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0

# What the driver raises when the database is gone, restarting, or refusing.
CONNECTION_ERRORS = (psycopg2.OperationalError, psycopg2.InterfaceError, DatabaseUnreachable)


class Outage:
    """What a process's links share about an outage, so that it is logged once and not once a thread.

    Each outage begins a new epoch.  A connection of an older one is not trusted: it is made anew before it is used.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._logged = False
        self._lock = threading.Lock()

    def begins(self, epoch: int, error: Exception) -> None:
        """A connection of this epoch was lost."""
        with self._lock:
            if self._logged or epoch != self.epoch:
                return
            self._logged = True
            self.epoch += 1
        log().warning(LogEvent.DATABASE_LOST, error=str(error).strip())

    def ends(self, epoch: int) -> None:
        """A statement went well on a connection of this epoch; a connection from before the outage proves nothing."""
        if not self._logged:
            return  # as nearly always: no lock for each statement
        with self._lock:
            back = self._logged and epoch == self.epoch
            self._logged = self._logged and not back
        if back:
            log().info(LogEvent.DATABASE_BACK)


class Link:
    """A connection in autocommit: every statement of a worker is a transaction of its own."""

    def __init__(self, url: str, name: str, outage: Outage) -> None:
        self._url = url
        self._name = name
        self._outage = outage
        self._connection: PgConnection | None = None
        self._epoch = outage.epoch
        self._pause = 0.0

    def get(self) -> PgConnection:
        """The connection; raises one of CONNECTION_ERRORS when there is none."""
        if self._epoch != self._outage.epoch:
            self.close()
        if self._connection is None:
            self._epoch = self._outage.epoch
            self._connection = database.connect_internal(self._url, self._name)
            self._connection.autocommit = True
        return self._connection

    def works(self) -> None:
        """A statement went well."""
        self._pause = 0.0
        self._outage.ends(self._epoch)

    def lost(self, error: Exception) -> float:
        """Drop the connection; the seconds to wait before the next try."""
        self.close()
        self._outage.begins(self._epoch, error)
        self._pause = min(self._pause * 2 or FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        return self._pause

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
