"""Connections that record when they began to wait for the server, and the thread that ends a wait that is too long.

The waiting thread is blocked, and cancelling its statement would need the same network, which does not answer.  So
another thread, which never waits, shuts the socket down; the waiting thread then gets an error, and its connection is
lost.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from types import MappingProxyType
from typing import Any

import psycopg2
import psycopg2.extensions
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from rowcall.base.clock import elapsed
from rowcall.base.errors import Permanent

# How long a worker's thread waits for the answer to one statement.  TCP timeouts do not help: to the kernel, a server
# that acknowledges packets but answers nothing is alive.
ANSWER_SECONDS = 10.0

# How often the separate thread checks, in a process that has no watchdog.
LOOK_SECONDS = 0.5

# Every statement qualifies its tables.  Functions, operators and types come from pg_catalog, whatever search_path the
# role or the database has; pg_temp is listed because it would otherwise come first.
# psycopg2 cannot read every interval style, so the style is set too.
INTERNAL_NAMES = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL intervalstyle = postgres;"

# The server ends a transaction that is idle for this many times ANSWER_SECONDS.  Otherwise a machine that vanished
# would keep its locks, such as the lock on a definition, for hours, until the server's kernel gives up.
ABANDONED_AFTER = 6


class WatchedConnection(psycopg2.extensions.connection):
    """A worker's connection; `waiting_since` tells a watching thread when its thread began to wait for an answer.

    With a prologue, only Rowcall's own statements run on it: each is watched, and each transaction begins with the
    prologue.  The prologue is sent together with the first statement, so it costs no round trip; nor does its BEGIN, if
    it has one because the connection is in autocommit.  Its settings end with the transaction, so a pooler does not
    pass them on to the next client.  Without a prologue, the statements are a handler's, and may take any time.
    """

    prologue: str | None = None
    waiting_since: float | None = None
    # How long the server had not answered when the connection was shut down.
    silent_for: float | None = None
    _ends_with_block = False
    # SQLAlchemy's engine for this connection and the typecasters that it registers, if a handler used SQLAlchemy.
    engine: object = None
    typecasters: Mapping[int, Any] = MappingProxyType({})
    # Whether statements stay prepared in the session (None: not known yet), and the names of those that are prepared.
    keeps_plans: bool | None = None
    plans: frozenset[str] = frozenset()
    # Returns SQL that goes with each statement, such as the time that is left for it.
    before_each: Callable[[], str] | None = None

    @property
    def begins(self) -> bool:
        """Whether our prologue begins transactions; the driver is in autocommit then, and does not notice them."""
        return self.autocommit and (self.prologue or "").startswith("BEGIN")

    @contextmanager
    def until_the_block_ends(self) -> Iterator[None]:
        """Refuse to end the transaction within the block, because Rowcall adds statements to it afterwards."""
        self._ends_with_block = True
        try:
            yield
        finally:
            self._ends_with_block = False

    def commit(self) -> None:
        """Commit, and mark the connection as waiting meanwhile."""
        self._refuse_within_the_block("commit")
        with answered(self):
            self._end("COMMIT") if self._in_own_transaction() else super().commit()

    def rollback(self) -> None:
        """Roll back, and mark the connection as waiting meanwhile."""
        self._refuse_within_the_block("rollback")
        with answered(self):
            self._end("ROLLBACK") if self._in_own_transaction() else super().rollback()

    def _in_own_transaction(self) -> bool:
        """Return whether a transaction is open that a prologue has begun."""
        return self.autocommit and self.info.transaction_status != TRANSACTION_STATUS_IDLE

    def _end(self, how: str) -> None:
        with psycopg2.extensions.cursor(self) as cursor:
            cursor.execute(how)

    def _refuse_within_the_block(self, what: str) -> None:
        if self._ends_with_block:
            raise Permanent(
                f"the handler called {what}() within run.step() or run.transaction(), which commits at the end of the"
                " block and rolls back on an error: remove the call (or `with connection:`, which makes it); to"
                " continue after an error, use a SAVEPOINT"
            )


# How long a command waits for a lock; workers and the API have limits of their own.
LOCK_SECONDS = 8.0


def lock_limit(seconds: float) -> str:
    """Return a prologue that limits how long we wait for a lock."""
    return f"{INTERNAL_NAMES} SET LOCAL lock_timeout = {round(seconds * 1000)};"


class InternalConnection(WatchedConnection):
    """A connection on which only Rowcall's own statements run."""

    prologue = lock_limit(LOCK_SECONDS)


def patient_prologue(lock_seconds: float, answer_seconds: float = ANSWER_SECONDS) -> str:
    """Return a prologue that limits our waits for a lock, and the server's wait for our next statement."""
    return (
        f"{lock_limit(lock_seconds)}"
        f" SET LOCAL idle_in_transaction_session_timeout = {round(answer_seconds * ABANDONED_AFTER * 1000)};"
    )


def was_ended(connection: WatchedConnection) -> bool:
    """Return whether the server has closed the connection, which makes it readable although nothing was sent."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def reset_session(connection: WatchedConnection) -> bool:
    """Reset what an app may have set in the session; return False if that fails."""
    try:
        connection.autocommit = True
        with answered(connection), psycopg2.extensions.cursor(connection) as cursor:
            cursor.execute("DISCARD ALL")
        connection.autocommit, connection.plans = False, frozenset()
    except psycopg2.Error:
        return False
    return True


@contextmanager
def answered(connection: psycopg2.extensions.connection) -> Iterator[None]:
    """Mark the connection as waiting for the server's answer during the block."""
    if not isinstance(connection, WatchedConnection):
        yield
        return
    connection.waiting_since = elapsed()
    try:
        yield
    except psycopg2.Error as error:
        if connection.silent_for is None:
            raise
        # The driver's own words would blame the server for closing the connection.
        silence = f"the server did not answer within {connection.silent_for:g} s"
        raise psycopg2.OperationalError(f"{silence}, so Rowcall closed the connection") from error
    finally:
        connection.waiting_since = None


class WatchedCursor(psycopg2.extensions.cursor):
    """A cursor that marks its connection as waiting, so that SQLAlchemy's statements are watched too."""

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - the driver's name for it
        """Execute a statement, and mark the connection as waiting meanwhile."""
        with answered(self.connection):
            super().execute(query, vars)


class Answers:
    """The watched connections of a process, and how long an answer on each may take."""

    def __init__(self) -> None:
        # Weak references, because a connection goes away with its thread.
        self._patience: dict[weakref.ref[WatchedConnection], float] = {}
        self._process = os.getpid()
        self._keeper: threading.Thread | None = None

    def watch(self, connection: WatchedConnection, seconds: float = ANSWER_SECONDS) -> None:
        """Watch this connection: no answer on it may take longer than this."""
        if self._process != os.getpid():
            # A forked child must not shut down its parent's connections.
            self._patience, self._process = {}, os.getpid()
        self._patience[weakref.ref(connection, self._gone)] = seconds

    def forget(self, connection: WatchedConnection) -> None:
        """Stop watching a connection that is about to be closed."""
        self._patience.pop(weakref.ref(connection), None)

    def end_overdue(self, most: float = inf) -> None:
        """Shut down the connections that have waited for too long, or for more than this many seconds."""
        now = elapsed()
        # Not list(items()): it allocates, so the garbage collector may run, and its callbacks remove entries.
        for reference, seconds in self._patience.copy().items():
            connection = reference()
            if connection is None or (since := connection.waiting_since) is None:
                continue
            if now > since + min(seconds, most):
                connection.silent_for = min(seconds, most)
                _shut_down(connection)

    def keep(self) -> None:
        """Watch from a separate thread, started once, in a process without a watchdog."""
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = threading.Thread(target=self._keep, name="answers", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)  # waking it for every statement would cost more than polling
            self.end_overdue()

    def _gone(self, reference: weakref.ref[WatchedConnection]) -> None:
        self._patience.pop(reference, None)


def _shut_down(connection: WatchedConnection) -> None:
    # The connection may just have been closed.
    with (
        suppress(psycopg2.InterfaceError, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)
