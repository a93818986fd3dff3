"""Wake-ups: what lets the producers look before the time of their next look has come."""

from __future__ import annotations

import threading


class WakeUps:
    """One event for each producer, set whenever there may be something to claim or to write."""

    def __init__(self) -> None:
        self._wakers: list[threading.Event] = []
        self._heard = False

    def waker(self) -> threading.Event:
        """A producer's own event; at first it is set."""
        event = threading.Event()
        event.set()
        self._wakers.append(event)
        return event

    def wake(self) -> None:
        """Let the producers look."""
        for event in self._wakers:
            if not event.is_set():
                event.set()

    def hear(self) -> None:
        """A notification came: something is due."""
        self._heard = True
        self.wake()

    def heard(self) -> bool:
        """Whether a notification came since this was asked last."""
        heard, self._heard = self._heard, False
        return heard
