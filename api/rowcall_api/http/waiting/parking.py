"""A request that waits for an event leaves its thread, and is handled again when the event happens.

Rowcall's own server keeps the connection of a parked request in its main loop.  Other WSGI servers cannot do that, so
there a request waits in its thread, and only a few may do so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rowcall.base.errors import TooManyWaiting

# Begins to watch for an event; calls its argument, in any thread, when the event happens.  Returns how to end this.
Begin: TypeAlias = Callable[[Callable[[], object]], Callable[[], None]]


# Returns the next part of a response that continues, or None to end it.
Take: TypeAlias = Callable[[], bytes | None]


class Parked(BaseException):
    """Not an error: the request leaves its thread until the event, or for this long.

    Without `take`, the request is then handled again.  With `take`, the beginning of its response has been sent, and
    after each event, the main loop sends what `take` returns.
    """

    def __init__(self, seconds: float, begin: Begin, take: Take | None = None) -> None:
        super().__init__()
        self.seconds = seconds
        self.begin = begin
        self.take = take
        self.chunked = True


class Stream:
    """The body of a response that begins in a thread and continues in the main loop."""

    def __init__(self, room: threading.Semaphore, beginning: bytes, parked: Parked) -> None:
        self._room = room
        self._beginning = beginning
        self._parked = parked
        self._goes_on = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the beginning, and leave the thread."""
        yield self._beginning
        self._goes_on = True
        raise self._parked

    def close(self) -> None:
        """Free this request's place if the response ended before the request was parked (WSGI's hook)."""
        if not self._goes_on:
            self._room.release()


@dataclass(eq=False)
class Place:
    """A request in Rowcall's own server: whether it has been parked, and what its first handling noted."""

    room: threading.Semaphore
    parked: Parked | None = None
    resumed: bool = False
    memory: dict[str, Any] = field(default_factory=dict)

    def take(self, seconds: float, begin: Begin) -> None:
        """Park the request, unless it has been parked already."""
        if self.resumed:
            return
        if not self.room.acquire(blocking=False):
            raise TooManyWaiting
        raise Parked(seconds, begin)

    def stream(self, seconds: float, beginning: bytes, begin: Begin, take: Take) -> Stream:
        """Return a body that continues for this long."""
        if not self.room.acquire(blocking=False):
            raise TooManyWaiting
        return Stream(self.room, beginning, Parked(seconds, begin, take))


# The place of the request that this thread handles; None in another server.
PLACE: ContextVar[Place | None] = ContextVar("rowcall_place", default=None)


class Waiting:
    """Lets requests wait.  Rowcall's own server parks them; elsewhere at most `most` wait in their threads."""

    def __init__(self, most: int) -> None:
        self._room = threading.Semaphore(most)

    def until(self, seconds: float, begin: Begin) -> bool:
        """Wait for the event, or for this long; return whether the request has waited in its thread."""
        place = PLACE.get()
        if place is not None:
            place.take(seconds, begin)
            return False
        if not self._room.acquire(blocking=False):
            raise TooManyWaiting
        try:
            happened = threading.Event()
            end_watch = begin(happened.set)
            try:
                happened.wait(seconds)
            finally:
                end_watch()
        finally:
            self._room.release()
        return True


def memory() -> dict[str, Any]:
    """Return what the first handling of this request noted for the second."""
    place = PLACE.get()
    return {} if place is None else place.memory
