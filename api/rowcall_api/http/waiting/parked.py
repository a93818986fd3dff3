"""The parked requests of a process, which its main loop keeps."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from gunicorn.workers.gthread import TConn, ThreadWorker

from rowcall_api.http.waiting.parking import Parked, Place

# The end of a response in chunks.
LAST_CHUNK = b"0\r\n\r\n"


class ParkableConnection(TConn):
    """A connection whose request can be parked."""

    place: Place


@dataclass(eq=False)
class Stay:
    """A parked request: when its time is up, how to stop watching for its event, and whether its socket is watched."""

    parked: Parked
    ends_at: float
    end_watch: Callable[[], None] = lambda: None
    watched: bool = True


Act: TypeAlias = Callable[[Any], None]


class ParkedConnections:
    """The connections with parked requests.  Everything here runs in the main thread."""

    def __init__(self, worker: ThreadWorker, resume: Act, leave: Act, close: Act) -> None:
        self._worker = worker
        self._resume = resume
        self._leave = leave
        self._close = close
        self._stays: dict[ParkableConnection, Stay] = {}

    def park(self, connection: ParkableConnection, parked: Parked) -> None:
        """Keep a connection until its event happens, its time is up, or the client leaves."""
        stay = self._stays[connection] = Stay(parked, time.monotonic() + parked.seconds)
        react = self._end if parked.take is None else self._go_on
        stay.end_watch = parked.begin(partial(self._worker.method_queue.defer, react, connection, stay))
        self._poller.register(connection.sock, selectors.EVENT_READ, partial(self._heard, connection, stay))

    def end_overdue(self, everything: bool) -> None:
        """End the wait of requests whose time is up, or of all requests because the server is stopping."""
        now = time.monotonic()
        for connection, stay in [*self._stays.items()]:
            if everything or stay.ends_at <= now:
                self._end(connection, stay)

    def _end(self, connection: ParkableConnection, stay: Stay) -> None:
        """Handle a request again, in a thread; or end its response."""
        if self._stays.get(connection) is not stay:
            return  # it ended earlier in this turn of the loop
        self._forget(connection, stay)
        if stay.parked.take is None:
            self._resume(connection)
            return
        try:
            if stay.parked.chunked:
                connection.sock.send(LAST_CHUNK)
            self._leave(connection)
        except OSError:
            self._close(connection)

    def _go_on(self, connection: ParkableConnection, stay: Stay) -> None:
        """Send pending text; drop a client that has not read what the kernel buffers for it."""
        if self._stays.get(connection) is not stay or stay.parked.take is None:
            return
        data = stay.parked.take()
        if data is None:
            self._end(connection, stay)
            return
        framed = b"%x\r\n%b\r\n" % (len(data), data) if stay.parked.chunked and data else data
        sent = 0
        with suppress(OSError):
            sent = connection.sock.send(framed)
        if sent < len(framed):
            self._drop(connection, stay)

    def _heard(self, connection: ParkableConnection, stay: Stay, _: socket.socket) -> None:
        """End the wait if the client has closed its side; if it has sent its next request, leave that in the kernel.

        A client that has closed its side may still read: only sending shows whether it does, so it is answered now.
        """
        if self._stays.get(connection) is not stay:
            return
        try:
            closed = not connection.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection, stay)
            return
        if closed:
            self._end(connection, stay)
        else:
            stay.watched = False
            self._poller.unregister(connection.sock)

    def _drop(self, connection: ParkableConnection, stay: Stay) -> None:
        self._forget(connection, stay)
        self._close(connection)

    def _forget(self, connection: ParkableConnection, stay: Stay) -> None:
        del self._stays[connection]
        stay.end_watch()
        if stay.watched:
            self._poller.unregister(connection.sock)
        connection.place.parked, connection.place.resumed = None, True
        connection.place.room.release()

    @property
    def _poller(self) -> selectors.BaseSelector:
        poller: Any = self._worker.poller
        found: selectors.BaseSelector = poller
        return found
