"""The parked requests of a process, as its main loop keeps them."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from rowcall_api.http.waiting.parking import Parked, Place


class ParkableConnection(TConn):
    """A connection whose request can be parked."""

    place: Place


@dataclass(eq=False)
class Stay:
    """A parked request: until when, what ends the watch for its event, and whether its socket is watched."""

    ends_at: float
    end_watch: Callable[[], None]
    watched: bool = True


class ParkedConnections:
    """The connections with parked requests.  Everything here runs in the main thread."""

    def __init__(self, worker: ThreadWorker, resume: Callable[[Any], None], close: Callable[[Any], None]) -> None:
        self._worker = worker
        self._resume = resume
        self._close = close
        self._stays: dict[ParkableConnection, Stay] = {}

    def park(self, connection: ParkableConnection, parked: Parked) -> None:
        """Keep a connection until its event happens, its time is up, or the client leaves."""
        stay = self._stays[connection] = Stay(time.monotonic() + parked.seconds, lambda: None)
        stay.end_watch = parked.begin(partial(self._worker.method_queue.defer, self._end, connection, stay))
        self._poller.register(connection.sock, selectors.EVENT_READ, partial(self._heard, connection, stay))

    def end_overdue(self, everything: bool) -> None:
        """Resume the requests whose time is up, or all because the server stops."""
        now = time.monotonic()
        for connection, stay in [*self._stays.items()]:
            if everything or stay.ends_at <= now:
                self._end(connection, stay)

    def _end(self, connection: ParkableConnection, stay: Stay) -> None:
        """Handle a request again, in a thread."""
        if self._stays.get(connection) is stay:
            self._forget(connection, stay)
            self._resume(connection)

    def _heard(self, connection: ParkableConnection, stay: Stay, _: socket.socket) -> None:
        """Drop a client that has left; leave its next request in the kernel, and do not look again."""
        if self._stays.get(connection) is not stay:
            return  # it was resumed earlier in this turn of the loop
        try:
            left = not connection.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            left = True
        if left:
            self._forget(connection, stay)
            self._close(connection)
        else:
            stay.watched = False
            self._poller.unregister(connection.sock)

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
