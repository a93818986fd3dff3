"""Answers: no thread of a worker waits for the database for ever.

The thread that waits cannot help itself, and to cancel its statement would need the network that is silent.  So another
thread, which never waits, shuts the socket down, and the one that waits learns that its connection is lost.
"""

from __future__ import annotations

import contextlib
import os
import socket

import psycopg2

from rowcall.base.clock import elapsed
from rowcall.base.database import ANSWER_SECONDS, WatchedConnection


class Answers:
    """The connections of a worker on which somebody may wait for an answer, and for how long at most."""

    def __init__(self) -> None:
        self._patience: dict[WatchedConnection, float] = {}
        self._most = float("inf")

    def watch(self, connection: WatchedConnection, seconds: float = ANSWER_SECONDS) -> None:
        """From now on no answer on this connection may take longer than this."""
        self._patience[connection] = seconds

    def forget(self, connection: WatchedConnection) -> None:
        """The connection is about to be closed."""
        self._patience.pop(connection, None)

    def hurry(self, seconds: float) -> None:
        """The worker stops: no answer may take longer than this any more."""
        self._most = seconds

    def end_overdue(self) -> None:
        """Shut down what has waited for too long."""
        now = elapsed()
        for connection, seconds in list(self._patience.items()):
            since = connection.waiting_since
            if since is not None and now > since + min(seconds, self._most):
                _shut_down(connection)


def _shut_down(connection: WatchedConnection) -> None:
    # It may just have ended by itself.
    with (
        contextlib.suppress(psycopg2.InterfaceError, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)
