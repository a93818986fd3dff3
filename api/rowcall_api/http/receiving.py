"""A gunicorn worker with read deadlines: a connection occupies no thread until its request has arrived.

gunicorn's own worker gives each new connection to a thread, which then waits for the request, so a few clients that
send nothing, or very slowly, would occupy all threads.  Here the main loop waits for all connections at once: it
receives each request, head and body, and waits for the client to disconnect after its last response.
"""

from __future__ import annotations

import errno
import math
import select
import selectors
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request
from gunicorn.workers.gthread import TConn, ThreadWorker

from rowcall_api.http.incoming import IncomingRequests
from rowcall_api.http.waiting.parked import ParkableConnection, ParkedConnections
from rowcall_api.http.waiting.parking import PLACE, Parked, Place

# The time limit from the first byte of a request to its last, and also from the connection to the first byte.
REQUEST_SECONDS = 10.0

# How long to wait for the client to disconnect after its last response: closing first could lose the response.
LEAVE_SECONDS = 2.0

# How long a stopping server waits for requests that are arriving.
STOP_SECONDS = 2.0

# How long a client may take to read a response; the rest is dropped.
ANSWER_SECONDS = 30.0

# Large enough that the kernel buffers most responses whole, up to its own limit, and no thread waits for the client.
SEND_BUFFER_BYTES = 1024 * 1024

# The limit for all incomplete requests of a process together.
HELD_BYTES = 64 * 1024 * 1024

RECEIVE_BYTES = 64 * 1024

# How often deadlines are checked.
LOOK_SECONDS = 0.25

# This path does not use the database, so it has a separate thread: a slow database may occupy all others.
ALIVE = "/healthz"

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestTimeout(ParseException):
    """Raised for a request that did not arrive completely in time."""


class NoRoom(ParseException):
    """A request that this server has no room to receive."""


class Connection(ParkableConnection):
    """A connection that waits in the main loop, or whose request a thread is handling."""

    def __init__(self, config: Config, client: socket.socket, address: Any, server: Any, body_bytes: int) -> None:
        super().__init__(config, client, address, server)
        self.requests = self.parser = IncomingRequests(config, address, body_bytes)
        self.data_ready = True  # the request is complete before a thread gets it
        self.receiving = False  # part of a request has arrived
        self.clogged = False  # the client sent its next request without reading the earlier responses
        self.leaving = False  # the last response has been sent
        self.ends_at = 0.0
        self.held = 0


class ReceivingWorker(ThreadWorker):
    """gunicorn's threaded worker. Everything here except handle_request runs in its main thread."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._alive_thread = ThreadPoolExecutor(1)
        self._waiting: dict[Connection, None] = {}  # the oldest first
        self._parked = ParkedConnections(self, self.enqueue_req, self._leave, self._close)
        # The other half is for requests that are answered at once.
        self._room = threading.Semaphore(self.worker_connections // 2)
        self._held = 0
        self._next_look = 0.0
        self._stops_at = math.inf

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection (gunicorn's hook); at the limit, close the one that has waited longest."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                self._make_room()
            elif error.errno not in {errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED}:
                raise
            return
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        app: Any = self.wsgi
        body_bytes = app.config["MAX_CONTENT_LENGTH"]
        connection = Connection(self.cfg, client, address, listener.getsockname(), body_bytes)
        self.nr_conns += 1
        self._wait(connection, REQUEST_SECONDS)
        # At this limit gunicorn stops accepting, which is right only if all connections have requests in progress.
        if self.nr_conns >= self.worker_connections:
            self._make_room(connection)

    def enqueue_req(self, conn: TConn) -> None:
        """Pass a request to a thread (gunicorn's hook)."""
        assert isinstance(conn, Connection)
        pool = self._alive_thread if conn.requests.asks_for(ALIVE) else self.tpool
        answered = pool.submit(self.handle, conn)
        answered.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: TConn, fs: Future[bool]) -> None:
        """Continue after a thread has responded (gunicorn's hook); its result says whether to keep the connection."""
        assert isinstance(conn, Connection)
        try:
            another = not fs.cancelled() and bool(fs.result())
            conn.sock.setblocking(False)
            if conn.place.parked is not None:
                self._parked.park(conn, conn.place.parked)
            elif another:
                self._next_request(conn)
            else:
                self._leave(conn)
        except Exception:  # as gunicorn does: any error closes this connection
            self._close(conn)

    def handle_request(self, req: Request, conn: TConn) -> bool:
        """Respond in a thread (gunicorn's hook), with a timeout for clients that do not read; or park the request."""
        assert isinstance(conn, Connection)
        conn.sock.settimeout(ANSWER_SECONDS)
        before = PLACE.set(conn.place)
        try:
            return super().handle_request(req, conn)
        except Parked as parked:
            conn.place.parked, parked.chunked = parked, req.version != (1, 0)
            return False
        finally:
            PLACE.reset(before)

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        """Run one turn of the main loop (gunicorn's hook)."""
        super().wait_for_and_dispatch_events(LOOK_SECONDS)
        now = time.monotonic()
        if not self.alive:
            self._stops_at = min(self._stops_at, now + STOP_SECONDS)
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._parked.end_overdue(everything=not self.alive)
            for connection in [one for one in self._waiting if min(one.ends_at, self._stops_at) <= now]:
                self._refuse(connection, RequestTimeout() if self.alive else NoRoom())

    def _ready(self, connection: Connection, _: socket.socket) -> None:
        """Handle the event that a connection was waiting for."""
        if connection not in self._waiting:
            return  # it was closed earlier in this turn of the loop
        if connection.clogged:
            self._answer(connection)
        else:
            self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        """Receive the bytes that have arrived."""
        try:
            data = connection.sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
        elif not connection.leaving:
            connection.requests.receive(data)
            self._next_request(connection)

    def _next_request(self, connection: Connection) -> None:
        """Pass the next request to a thread if it is complete; otherwise wait for the rest."""
        requests = connection.requests
        arrived = requests.arrived()
        self._hold(connection, requests.held)
        if arrived:
            self._answer(connection)
        elif not requests.begun:
            self._wait(connection, self.cfg.keepalive)
        elif self._held > HELD_BYTES:
            self._refuse(connection, NoRoom())
        else:
            if not connection.receiving:
                connection.receiving = True
                self._wait(connection, REQUEST_SECONDS)
            if requests.expects_continue():
                with suppress(OSError):
                    connection.sock.send(CONTINUE)

    def _answer(self, connection: Connection) -> None:
        """Pass a complete request to a thread once the client has read most of the earlier responses."""
        self._stop_waiting(connection)
        connection.clogged = not has_room(connection.sock)
        if connection.clogged:
            self._wait(connection, ANSWER_SECONDS, selectors.EVENT_WRITE)
        else:
            connection.place = Place(self._room)
            self.enqueue_req(connection)

    def _leave(self, connection: Connection) -> None:
        """Shut down the sending side and wait for the client to close."""
        connection.leaving = True
        self._hold(connection, 0)
        connection.sock.shutdown(socket.SHUT_WR)
        self._wait(connection, LEAVE_SECONDS)

    def _wait(self, connection: Connection, seconds: float, event: int = selectors.EVENT_READ) -> None:
        connection.ends_at = time.monotonic() + seconds
        if connection not in self._waiting:
            self.poller.register(connection.sock, event, partial(self._ready, connection))
            self._waiting[connection] = None

    def _stop_waiting(self, connection: Connection) -> None:
        connection.receiving = False
        if connection in self._waiting:
            del self._waiting[connection]
            self.poller.unregister(connection.sock)

    def _hold(self, connection: Connection, count: int) -> None:
        self._held += count - connection.held
        connection.held = count

    def _make_room(self, newest: Connection | None = None) -> None:
        """Close the connection that has waited longest."""
        oldest = next(iter(self._waiting), newest)
        if oldest is not None and oldest is not newest:
            self._refuse(oldest, NoRoom())

    def _refuse(self, connection: Connection, why: ParseException) -> None:
        """Close a connection; first send the reason if the client has begun a request and can receive a response."""
        if connection.requests.begun and not connection.leaving and not connection.clogged:
            self.handle_error(None, connection.sock, connection.client, why)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._stop_waiting(connection)
        self._hold(connection, 0)
        self.nr_conns -= 1
        connection.close()


def has_room(client: socket.socket) -> bool:
    """Return whether the kernel can buffer a typical response at once."""
    poll = select.poll()
    poll.register(client, select.POLLOUT)
    return bool(poll.poll(0))
