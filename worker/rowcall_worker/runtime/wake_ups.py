"""Wake-ups: events that let the producers look before their next planned look."""

from __future__ import annotations

import threading


class WakeUps:
    """One event for each producer, set when there may be something to claim or to write."""

    def __init__(self) -> None:
        self._wakers: list[threading.Event] = []
        self._leading: list[threading.Event] = []
        self._heard = False

    def waker(self, leads: bool = True) -> threading.Event:
        """Create the event of one producer, which is set initially."""
        event = threading.Event()
        event.set()
        self._wakers.append(event)
        if leads:
            self._leading.append(event)
        return event

    def wake(self) -> None:
        """Make the producers look."""
        for event in self._wakers:
            if not event.is_set():
                event.set()

    def hear(self) -> None:
        """Record a notification, and wake the leading producer; the other one would claim nothing."""
        self._heard = True
        for event in self._leading:
            event.set()

    def heard(self) -> bool:
        """Whether a notification came since the last call."""
        heard, self._heard = self._heard, False
        return heard
