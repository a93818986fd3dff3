"""The notifier: LISTEN wakes the producers when something is enqueued.  Polling is the truth; this saves the wait."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable

from rowcall.queue.wake import CHANNEL
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link

# How often the thread looks whether it should end.
TICK_SECONDS = 1.0


class Notifier:
    """A thread that waits for notifications."""

    def __init__(self, link: Link, wake: Callable[[], None]) -> None:
        self._link = link
        self._wake = wake
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin; a daemon, because nothing is lost with it."""
        threading.Thread(target=self._run, name="notifier", daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._listen()
            except CONNECTION_ERRORS as error:
                self._stopped.wait(self._link.lost(error))
        self._link.close()

    def _listen(self) -> None:
        connection = self._link.get()
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        self._link.works()
        # Runs that were enqueued before LISTEN took effect are found by looking once.
        self._wake()
        while not self._stopped.is_set():
            if select.select([connection], [], [], TICK_SECONDS)[0]:
                connection.poll()
                if connection.notifies:
                    connection.notifies.clear()
                    self._wake()
