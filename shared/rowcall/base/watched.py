"""Connections that show other threads how long they have waited for the server's answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2.extensions

from rowcall.base.clock import elapsed

# How long a worker's thread waits for the answer to one statement.  The kernel cannot tell: a server that acknowledges
# every packet and answers nothing looks alive to it.
ANSWER_SECONDS = 10.0

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

    def commit(self) -> None:
        """Commit, and be seen to wait for it."""
        with answered(self):
            super().commit()

    def rollback(self) -> None:
        """Roll back, and be seen to wait for it."""
        with answered(self):
            super().rollback()


class InternalConnection(WatchedConnection):
    """A connection on which only Rowcall's own statements run."""

    prologue = INTERNAL_NAMES


def patient_prologue(lock_seconds: float, answer_seconds: float = ANSWER_SECONDS) -> str:
    """The prologue with which neither side waits for ever: we for what is locked, the server for our next statement."""
    return (
        f"{INTERNAL_NAMES} SET LOCAL lock_timeout = {round(lock_seconds * 1000)};"
        f" SET LOCAL idle_in_transaction_session_timeout = {round(answer_seconds * ABANDONED_AFTER * 1000)};"
    )


@contextmanager
def answered(connection: psycopg2.extensions.connection) -> Iterator[None]:
    """Mark the connection as waiting for the server's answer, for as long as the block."""
    if not isinstance(connection, WatchedConnection):
        yield
        return
    connection.waiting_since = elapsed()
    try:
        yield
    finally:
        connection.waiting_since = None
