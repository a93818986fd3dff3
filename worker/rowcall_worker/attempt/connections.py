"""The connections of handlers: each handler thread keeps one for all its runs, unless its settings were changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import committed, confirmed, prologue_for_statement, prologue_for_transaction
from rowcall.base.watched import ANSWER_SECONDS, Answers, WatchedConnection, reset_session, was_ended

if TYPE_CHECKING:
    import sqlalchemy

# How long an effect waits for a lock, such as that of the same effect in another run.
LOCK_SECONDS = 5.0

# A connection that was idle for longer is replaced: a firewall may have dropped it, and the next run would fail.
IDLE_SECONDS = 30.0

ALONE, TOGETHER = prologue_for_statement(LOCK_SECONDS), prologue_for_transaction(LOCK_SECONDS)


class Connections:
    """The database connections of one process's handlers.

    A thread that is already in a transaction, or that a handler started, gets another connection, which is closed after
    use.  A process that a handler forked gets new connections, because those of its parent belong to the parent.
    """

    def __init__(self, url: str, answers: Answers, patience: float = ANSWER_SECONDS) -> None:
        self._url = url
        self._answers = answers
        self._patience = patience
        self._of_thread = threading.local()

    def keep_for_this_thread(self) -> None:
        """Let this thread, a handler thread, keep its connection until the thread ends."""
        if not hasattr(self._of_thread, "serves"):
            self._of_thread.serves, self._of_thread.kept = os.getpid(), None

    @contextmanager
    def transaction(self) -> Iterator[WatchedConnection]:
        """Open a transaction for the handler's statements; it commits only at the end of the block."""
        with self._borrowed(None) as connection, committed(connection), connection.until_the_block_ends():
            yield connection

    @contextmanager
    def sqlalchemy_transaction(self) -> Iterator[tuple[WatchedConnection, sqlalchemy.Connection]]:
        """Open a transaction as `transaction` does, and wrap its connection for SQLAlchemy."""
        from rowcall_worker.attempt.sqlalchemy_session import connected

        with (
            self._borrowed(None) as connection,
            connected(connection) as held,
            committed(connection),
            connection.until_the_block_ends(),
        ):
            yield connection, held

    @contextmanager
    def internal_transaction(self) -> Iterator[WatchedConnection]:
        """Open a transaction for Rowcall's own statements only."""
        with self._borrowed(TOGETHER) as connection, committed(connection):
            yield connection

    @contextmanager
    def internal_statement(self) -> Iterator[WatchedConnection]:
        """Open a transaction for one statement of Rowcall's, in one round trip.

        A warning of a trigger is reported as an unconfirmed commit too, because both come with the same answer.
        """
        with self._borrowed(ALONE) as connection, confirmed(connection):
            yield connection

    @contextmanager
    def _borrowed(self, prologue: str | None) -> Iterator[WatchedConnection]:
        """Yield the thread's kept connection or, if that is in use, a new one, which the thread may keep later."""
        connection = self._kept() or self._connect()
        connection.prologue, connection.autocommit = prologue, prologue is not None
        try:
            yield connection
            if prologue is not None:
                connection.autocommit = False
        except BaseException:
            # The connection itself may be the problem: its server may have been read-only when it was opened.
            self._close(connection)
            raise
        room = self._keeps() and self._of_thread.kept is None
        if room and _as_made(connection) and (prologue or reset_session(connection)):
            self._of_thread.kept, self._of_thread.kept_at = connection, elapsed()
        else:
            self._close(connection)

    def _keeps(self) -> bool:
        return getattr(self._of_thread, "serves", None) == os.getpid()

    def _kept(self) -> WatchedConnection | None:
        """Return the connection that the thread keeps, if it can still be trusted."""
        if not self._keeps():
            return None
        kept: WatchedConnection | None = self._of_thread.kept
        self._of_thread.kept = None
        if kept is None:
            return None
        if elapsed() < self._of_thread.kept_at + IDLE_SECONDS and _as_made(kept) and not was_ended(kept):
            return kept
        self._close(kept)
        return None

    def _connect(self) -> WatchedConnection:
        connection = database.connect_watched(self._url, "rowcall handler")
        self._answers.watch(connection, self._patience)
        return connection

    def _close(self, connection: WatchedConnection) -> None:
        self._answers.forget(connection)
        connection.close()


def _as_made(connection: WatchedConnection) -> bool:
    """Return whether the connection is open, outside any transaction, and has its original settings."""
    return (
        not connection.closed
        and connection.info.transaction_status == TRANSACTION_STATUS_IDLE
        and (connection.isolation_level, connection.readonly, connection.deferrable) == (None, None, None)
        and connection.cursor_factory is None
        and not connection.autocommit
        and connection.encoding == "UTF8"
    )
