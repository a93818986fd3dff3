"""Answers: no thread of a worker waits for the database for ever.

The waiting thread is blocked, and cancelling its statement would need the silent network.  So another thread, which
never waits, shuts the socket down, and the waiting thread gets an error: its connection is lost.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref

import psycopg2

from rowcall.base.clock import elapsed
from rowcall.base.watched import ANSWER_SECONDS, WatchedConnection

# How often the thread of a child process looks.
LOOK_SECONDS = 0.5


class Answers:
    """The connections of a worker, and how long an answer on each may take."""

    def __init__(self) -> None:
        # Weak: a thread that ends takes its connection with it.
        self._patience: dict[weakref.ref[WatchedConnection], float] = {}

    def watch(self, connection: WatchedConnection, seconds: float = ANSWER_SECONDS) -> None:
        """From now on, no answer on this connection may take longer than this."""
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

    def _gone(self, reference: weakref.ref[WatchedConnection]) -> None:
        self._patience.pop(reference, None)


def watched_answers() -> Answers:
    """Answers with a thread of its own, for a process that has no watchdog."""
    answers = Answers()

    def keep() -> None:
        while True:
            time.sleep(LOOK_SECONDS)  # waking it for every statement would cost more than looking
            answers.end_overdue()

    threading.Thread(target=keep, name="answers", daemon=True).start()
    return answers


def _shut_down(connection: WatchedConnection) -> None:
    # It may just have ended by itself.
    with (
        contextlib.suppress(psycopg2.InterfaceError, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)
