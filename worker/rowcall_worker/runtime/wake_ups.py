"""Wakes the producers before their next poll."""

from __future__ import annotations

import threading


class WakeUps:
    """One event for each producer, set when there may be something to claim or to write."""

    def __init__(self) -> None:
        self._wakers: list[threading.Event] = []
        self._heard = False

    def waker(self) -> threading.Event:
        """Return a new event for a producer, initially set."""
        event = threading.Event()
        event.set()
        self._wakers.append(event)
        return event

    def wake(self) -> None:
        """Wake all producers."""
        for event in self._wakers:
            if not event.is_set():
                event.set()

    def hear(self) -> None:
        """Record a notification that something is due, and wake all producers."""
        self._heard = True
        self.wake()

    def heard(self) -> bool:
        """Return whether a notification has come since the last call."""
        heard, self._heard = self._heard, False
        return heard
