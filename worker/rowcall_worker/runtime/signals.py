"""Handles signals: the first asks the worker to stop, a later one ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType

from rowcall.base.child_processes import stop_signals
from rowcall.base.clock import elapsed

# The exit code of a process that this signal ended, as a shell reports it.
ENDED_BY_SIGNAL = 128

# Signals that come so soon after the first are one request: `timeout` signals a process and then its group, and a
# service manager signals a supervisor, which passes the signal on, and each of its workers.
ONE_REQUEST_SECONDS = 1.0


class StopSignal:
    """Records whether the worker was asked to stop; `wake` interrupts the main thread's wait.

    `last_words` logs what the worker leaves behind if it ends at once.  It must take no lock, because this thread may
    already hold the lock.  `wake` sets an event and so takes its lock; therefore another thread calls it.
    """

    def __init__(self, wake: Callable[[], None], last_words: Callable[[], None]) -> None:
        self.asked = self._ending = False
        self.name = ""
        self._last_words = last_words
        self._heard: SimpleQueue[None] = SimpleQueue()  # its put() is reentrant
        threading.Thread(target=self._pass_on, args=(wake,), name="stop signal", daemon=True).start()
        for number in stop_signals():
            signal.signal(number, self._receive)

    def _pass_on(self, wake: Callable[[], None]) -> None:
        self._heard.get()
        wake()

    def _receive(self, number: int, _: FrameType | None) -> None:
        if not self.asked:
            self.asked, self.name, self._asked_at = True, signal.Signals(number).name, elapsed()
            self._heard.put(None)
        # When a terminal closes, both its shell and the kernel may send SIGHUP.
        elif number != signal.SIGHUP and elapsed() - self._asked_at > ONE_REQUEST_SECONDS:
            try:
                if not self._ending:  # a third signal ends a worker whose log nobody reads
                    self._ending = True
                    self._last_words()
            finally:
                # Handlers may hang and the database may be gone, so let the leases expire.
                os._exit(ENDED_BY_SIGNAL + number)
