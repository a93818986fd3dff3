"""Connections that show how long they have waited for the server's answer, and the thread that ends the wait.

The waiting thread is blocked, and cancelling its statement would need the silent network.  So another thread, which
never waits, shuts the socket down, and the waiting thread gets an error: its connection is lost.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

import psycopg2
import psycopg2.extensions

from rowcall.base.clock import elapsed
from rowcall.base.errors import Permanent

# How long a worker's thread waits for the answer to one statement.  The kernel cannot tell: a server that acknowledges
# every packet and answers nothing looks alive to it.
ANSWER_SECONDS = 10.0

# How often the thread looks in a process that has no watchdog.
LOOK_SECONDS = 0.5

# Tables are written out in every statement.  Functions, operators and types are looked up where PostgreSQL keeps its
# own, whatever search_path the role or the database has; pg_temp is named because it would otherwise come first.
# Intervals are read in the one style that psycopg2 knows besides the server's default.
INTERNAL_NAMES = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL intervalstyle = postgres;"

# The server ends our transaction when no statement has come for this many times ANSWER_SECONDS.  Otherwise a machine
# that vanished would keep its locks, such as the one on a definition, until the server's kernel gives up: for hours.
ABANDONED_AFTER = 6


class WatchedConnection(psycopg2.extensions.connection):
    """A connection of a worker; `waiting_since` is when its thread began to wait for an answer, for a watching thread.

    With a prologue, only Rowcall's own statements run on it: each of them is watched, and each transaction begins with
    the prologue.  It is sent in front of the transaction's first statement, so that it costs no round trip, and it ends
    with the transaction, so that a pooler hands nothing of it to the next client.  Without a prologue the statements
    are a handler's, and may take as long as the handler likes.
    """

    prologue: str | None = None
    waiting_since: float | None = None
    _ends_with_block = False
    # SQLAlchemy's engine for this one connection, and the typecasters that it registers, once a handler asked for it.
    engine: object = None
    typecasters: Mapping[int, Any] = MappingProxyType({})

    @contextmanager
    def until_the_block_ends(self) -> Iterator[None]:
        """Refuse to end the transaction within the block: what else belongs to it comes after."""
        self._ends_with_block = True
        try:
            yield
        finally:
            self._ends_with_block = False

    def commit(self) -> None:
        """Commit, and be seen to wait for it."""
        self._refuse_within_the_block("commit")
        with answered(self):
            super().commit()

    def rollback(self) -> None:
        """Roll back, and be seen to wait for it."""
        self._refuse_within_the_block("rollback")
        with answered(self):
            super().rollback()

    def _refuse_within_the_block(self, what: str) -> None:
        if self._ends_with_block:
            raise Permanent(
                f"the handler called {what}() within run.step() or run.transaction(), whose end commits all of it and"
                " an error rolls back: leave it out, also `with connection:`; to go on after an error, use a SAVEPOINT"
            )


class InternalConnection(WatchedConnection):
    """A connection on which only Rowcall's own statements run."""

    prologue = INTERNAL_NAMES
    # Whether the session keeps what it has planned (None: not known yet), and the names of what it has.
    keeps_plans: bool | None = None
    plans: frozenset[str] = frozenset()


def patient_prologue(lock_seconds: float, answer_seconds: float = ANSWER_SECONDS) -> str:
    """The prologue that bounds both waits: ours for a lock, and the server's for our next statement."""
    return (
        f"{INTERNAL_NAMES} SET LOCAL lock_timeout = {round(lock_seconds * 1000)};"
        f" SET LOCAL idle_in_transaction_session_timeout = {round(answer_seconds * ABANDONED_AFTER * 1000)};"
    )


@contextmanager
def answered(connection: psycopg2.extensions.connection) -> Iterator[None]:
    """Mark the connection as waiting for the server's answer during the block."""
    if not isinstance(connection, WatchedConnection):
        yield
        return
    connection.waiting_since = elapsed()
    try:
        yield
    finally:
        connection.waiting_since = None


class WatchedCursor(psycopg2.extensions.cursor):
    """A cursor that marks its connection as waiting during each statement, so that SQLAlchemy's are watched too."""

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - the driver calls it so
        """Send a statement, and be seen to wait for its answer."""
        with answered(self.connection):
            super().execute(query, vars)


class Answers:
    """The connections of a process, and how long an answer on each may take."""

    def __init__(self) -> None:
        # Weak: a thread that ends takes its connection with it.
        self._patience: dict[weakref.ref[WatchedConnection], float] = {}
        self._process = os.getpid()
        self._keeper: threading.Thread | None = None

    def watch(self, connection: WatchedConnection, seconds: float = ANSWER_SECONDS) -> None:
        """From now on, no answer on this connection may take longer than this."""
        if self._process != os.getpid():
            # A fork must not end what its parent waits for.
            self._patience, self._process = {}, os.getpid()
        self._patience[weakref.ref(connection, self._gone)] = seconds

    def forget(self, connection: WatchedConnection) -> None:
        """The connection is about to be closed."""
        self._patience.pop(weakref.ref(connection), None)

    def end_overdue(self) -> None:
        """Shut down the connections that have waited for too long."""
        now = elapsed()
        # Not list(items()): each pair it makes may wake the collector, whose callbacks take connections out.
        for reference, seconds in self._patience.copy().items():
            connection = reference()
            if connection is None or (since := connection.waiting_since) is None:
                continue
            if now > since + seconds:
                _shut_down(connection)

    def keep(self) -> None:
        """Watch from a separate thread, started once, in a process without a watchdog."""
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = threading.Thread(target=self._keep, name="answers", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)  # waking it for every statement would cost more than looking
            self.end_overdue()

    def _gone(self, reference: weakref.ref[WatchedConnection]) -> None:
        self._patience.pop(reference, None)


def _shut_down(connection: WatchedConnection) -> None:
    # It may just have ended by itself.
    with (
        suppress(psycopg2.InterfaceError, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)
