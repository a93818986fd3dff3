"""Signals: the first one asks the worker to stop, the second ends it at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)

# The exit code of a process that this signal ended, as a shell reports it.
ENDED_BY_SIGNAL = 128


class StopSignal:
    """Whether the worker was asked to stop; `wake` ends whatever the main thread is waiting for."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.asked = False
        self._wake = wake
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            # Handlers may hang and the database may be gone: the leases run out by themselves.
            os._exit(ENDED_BY_SIGNAL + number)
        self.asked = True
        self._wake()
