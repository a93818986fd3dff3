"""The notifier: LISTEN wakes the producers when something is enqueued. Correctness depends on polling alone."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Callable

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.prepared import is_our_session
from rowcall.queue.fragments import CHANNEL
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link

# How often the thread checks whether it should end.
TICK_SECONDS = 1.0


class Notifier:
    """A thread that waits for notifications; every `patience` seconds it checks that the server still answers."""

    def __init__(self, link: Link, wake: Callable[[], None], patience: float) -> None:
        self._link = link
        self._wake = wake
        self._patience = patience
        self._stopped = threading.Event()
        # Whether notifications arrive: a pooler may run each statement in another session.
        self.listens = False

    def start(self, guarded: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        """Start the thread, as a daemon, because nothing is lost if it is killed."""
        threading.Thread(target=guarded(self._run), name="notifier", daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._listen()
            except CONNECTION_ERRORS as error:
                self.listens = False
                self._stopped.wait(self._link.lost(error))
        self._link.close()

    def _listen(self) -> None:
        connection = self._link.get()
        fetch_all(connection, f"LISTEN {CHANNEL}")
        self.listens = is_our_session(connection)
        self._link.responds()
        # Look once for runs that were enqueued before LISTEN took effect.
        self._wake()
        # Not select(), which only supports descriptors below 1024.
        with selectors.PollSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            while not self._stopped.is_set():
                self._wait(connection, selector, elapsed() + self._patience)

    def _wait(self, connection: PgConnection, selector: selectors.BaseSelector, until: float) -> None:
        """Wait for notifications until this time, then check that the server still answers."""
        while not self._stopped.is_set() and elapsed() < until:
            if selector.select(min(TICK_SECONDS, self._patience)):
                connection.poll()
                self._hear(connection)
        if not self._stopped.is_set():
            fetch_all(connection, "SELECT 1")
            self._hear(connection)

    def _hear(self, connection: PgConnection) -> None:
        if connection.notifies:
            connection.notifies.clear()
            self._wake()
