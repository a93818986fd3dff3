"""Handles signals: the first asks the worker to stop, the second ends it at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)

# The exit code of a process that this signal ended, as a shell reports it.
ENDED_BY_SIGNAL = 128


class StopSignal:
    """Records whether the worker was asked to stop; `wake` interrupts the main thread's wait."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.asked = False
        self._wake = wake
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            # Handlers may hang and the database may be gone, so let the leases expire.
            os._exit(ENDED_BY_SIGNAL + number)
        self.asked = True
        self._wake()
