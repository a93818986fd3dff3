"""The connection of one thread: opened when needed, dropped when lost, reopened with growing delays."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any, NoReturn

import psycopg2
from psycopg2.errors import LockNotAvailable
from psycopg2.extras import register_default_jsonb

from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.errors import DatabaseUnreachable, SchemaMismatch
from rowcall.base.errors.sentences import one_line
from rowcall.base.logs import LogEvent, log
from rowcall.base.outages import LOCKED, is_outage, is_passing
from rowcall.base.watched import ANSWER_SECONDS, Answers, InternalConnection, patient_prologue
from rowcall.schema import SCHEMA_ERRORS, check_revision

# Wait this long after the first failure, twice as long after each further one.
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0

# How long a worker's write waits for a lock before it is put off, because other writes are waiting behind it.
LOCK_SECONDS = 0.2

# What stops a thread's statements for this long is logged.
HINDERED_SECONDS = 3.0

DECODER = json.JSONDecoder()

# The errors that threads pass to Link.lost, which re-raises those that are neither an outage nor transient.
CONNECTION_ERRORS = (psycopg2.Error, DatabaseUnreachable)


def _decoded(text: str) -> Any:
    return DECODER.raw_decode(text)[0]


class Outage:
    """What the links of a process share about an outage, so that it is logged once and not once per thread.

    Each outage begins a new epoch. A connection of an older epoch is not trusted, and is replaced before it is used.
    """

    def __init__(self) -> None:
        self.answers = Answers()
        self.epoch = 0
        # When a statement of each part of the worker last succeeded.
        self.worked_at: dict[str, float] = {}
        self._logged = False
        self._hindered: set[Link] = set()
        self._lock = threading.Lock()

    @property
    def lasts(self) -> bool:
        """Whether the database is unreachable, as far as this process knows."""
        return self._logged

    def begins(self, epoch: int, error: Exception) -> None:
        """Record that a connection of this epoch was lost."""
        with self._lock:
            if self._logged or epoch != self.epoch:
                return
            self._logged = True
            self.epoch += 1
        log().warning(LogEvent.DATABASE_LOST, error=str(error).strip())

    def hinders(self, link: Link, error: Exception) -> None:
        """Record that a lock, or another error that usually passes, stops the thread of this link; log the first."""
        with self._lock:
            first = not self._hindered
            self._hindered.add(link)
        if first and isinstance(error, LockNotAvailable):
            log().warning(LogEvent.DATABASE_LOCKED, error=LOCKED)
        elif first:
            log().warning(LogEvent.DATABASE_REFUSES, error=one_line(str(error)))

    def hinders_no_more(self, link: Link) -> None:
        """Record that the thread of this link goes on."""
        with self._lock:
            self._hindered.discard(link)

    def ends(self, epoch: int) -> None:
        """End the outage, because a statement succeeded on a connection that was opened after it began."""
        if not self._logged:
            return  # the usual case, which needs no lock
        with self._lock:
            back = self._logged and epoch == self.epoch
            self._logged = self._logged and not back
            # Replace all connections: one opened during the outage may lead to a server that is still read-only.
            self.epoch += back
        if back:
            log().info(LogEvent.DATABASE_BACK)


class Link:
    """A connection in autocommit mode, so that each statement of a worker is a separate transaction.

    If a statement gets no result within `patience` seconds, its connection is closed, and this counts as an outage.
    The links that a worker uses to stop are `tolerant`: a changed schema must not end the stop early.
    """

    def __init__(
        self,
        url: str,
        name: str,
        outage: Outage,
        patience: float = ANSWER_SECONDS,
        tolerant: bool = False,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        self._url = url
        self._name = name
        self._outage = outage
        self._patience = patience
        self._tolerant = tolerant
        self._lock_seconds = lock_seconds
        self._connection: InternalConnection | None = None
        self._epoch = outage.epoch
        self._pause = 0.0
        self._hindered_since: float | None = None

    def get(self) -> InternalConnection:
        """Return the connection, opening it if necessary; raise one of CONNECTION_ERRORS if that fails."""
        if self._epoch != self._outage.epoch:
            self.close()
        if self._connection is None:
            self._epoch = self._outage.epoch
            connection = database.connect_internal(self._url, self._name)
            connection.prologue = patient_prologue(self._lock_seconds, self._patience)
            connection.autocommit = True
            # Claims read many payloads, and json.loads would look for spaces around each of them.
            register_default_jsonb(connection, loads=_decoded)
            self._outage.answers.watch(connection, self._patience)
            self._connection = connection
        return self._connection

    @property
    def connected(self) -> bool:
        """Whether a connection is open, as far as this process knows."""
        return self._connection is not None

    def responds(self) -> None:
        """Record that the server answers; another thread finds out whether it accepts writes."""
        self._pause = 0.0

    def works(self) -> None:
        """Record that a statement succeeded."""
        self._pause = 0.0
        if self._hindered_since is not None:
            self._hindered_since = None
            self._outage.hinders_no_more(self)
        self._outage.worked_at[self._name.rpartition(" ")[2]] = elapsed()
        self._outage.ends(self._epoch)

    def lost(self, error: Exception) -> float:
        """Give up the statement; return the seconds to wait before the next try.

        An outage drops the connection; a passing error, such as a lock that was not free, does not. Other errors are
        raised, as SchemaMismatch if the schema has changed under the worker.
        """
        if is_outage(error):
            self.close()
            self._outage.begins(self._epoch, error)
        elif isinstance(error, SCHEMA_ERRORS):
            if not self._tolerant:
                self._explain(error)
        elif not is_passing(error):
            raise error
        else:
            self._hindered_since = self._hindered_since or elapsed()
            if elapsed() >= self._hindered_since + HINDERED_SECONDS:
                self._outage.hinders(self, error)
        self._pause = min(self._pause * 2 or FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        return self._pause

    def _explain(self, error: Exception) -> NoReturn:
        """Raise SchemaMismatch, because a table or column that existed when the worker started is missing."""
        with suppress(*CONNECTION_ERRORS):  # the first error says more than that of a connection that was lost later
            check_revision(self.get())
        raise SchemaMismatch(
            f"the database's schema has changed under this worker: {one_line(str(error))}; run `rowcall migrate`, and"
            " start the worker again"
        ) from error

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._outage.answers.forget(self._connection)
            self._connection.close()
            self._connection = None
