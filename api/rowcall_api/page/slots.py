"""How many screens a process reads at once, so that a slow database leaves threads for the API's other requests.

A screen waits for a slot while the others are fast.  Once one of them is slow, further screens are refused at once:
if they waited, they would hold the threads that the API's other requests need.
"""

from __future__ import annotations

import threading
import time

from rowcall.base.errors import DatabaseUnavailable

# Key in the application's extensions.
SLOTS = "page_slots"

# A screen that takes longer than this is slow: at least one of its parts was.
SLOW_SECONDS = 2.0

BUSY = "other screens are waiting for the database, so this one was not loaded: reload it in a moment"


class Slots:
    """The screens that this process is reading, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._began: dict[object, float] = {}
        self._freed = threading.Condition()

    def take(self, slot: object) -> None:
        """Take a slot; raise DatabaseUnavailable if all are taken and the oldest screen is slow."""
        with self._freed:
            while len(self._began) >= self._most:
                left = next(iter(self._began.values())) + SLOW_SECONDS - time.monotonic()
                if left <= 0:
                    raise DatabaseUnavailable(BUSY)
                self._freed.wait(left)
            self._began[slot] = time.monotonic()

    def give_back(self, slot: object) -> None:
        """Release the slot, if it was taken."""
        with self._freed:
            if self._began.pop(slot, None) is not None:
                self._freed.notify()
