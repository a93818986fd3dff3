"""gunicorn's worker, with read deadlines: a connection costs no thread until its request has arrived.

gunicorn gives each new connection to a thread, which then waits for the request.  A few clients that send nothing, or a
byte now and then, would keep all threads.  Here the main loop, which waits for all connections at once, receives the
whole request, head and body, and waits for the client to leave after its last answer.
"""

from __future__ import annotations

import errno
import math
import select
import selectors
import socket
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

# From the first byte of a request to its last; as long again may pass before the first.
REQUEST_SECONDS = 10.0

# A client that gets its last answer reads it and leaves.  To close first could take the answer away from it.
LEAVE_SECONDS = 2.0

# A server that stops gives a request that a client may just be sending so long to arrive.
STOP_SECONDS = 2.0

# No client needs longer to take an answer; what it has not taken then is lost.
ANSWER_SECONDS = 30.0

# The kernel takes most answers whole (it allows as much as its own limit), so that no thread waits for their clients.
SEND_BUFFER_BYTES = 1024 * 1024

# The parts of requests that a process keeps, all together.
HELD_BYTES = 64 * 1024 * 1024

RECEIVE_BYTES = 64 * 1024

# Deadlines are looked at so often.
LOOK_SECONDS = 0.25

# What asks nothing of the database is answered by a thread of its own, because a slow one may keep all others.
ALIVE = "/healthz"

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestTimeout(ParseException):
    """A request that began and did not arrive in time."""


class NoRoom(ParseException):
    """A request that this server has no room to receive."""


class Connection(TConn):
    """A connection that waits in the main loop, or has its request answered by a thread."""

    def __init__(self, config: Config, client: socket.socket, address: Any, server: Any, body_bytes: int) -> None:
        super().__init__(config, client, address, server)
        self.requests = self.parser = IncomingRequests(config, address, body_bytes)
        self.data_ready = True  # a thread has nothing to wait for
        self.receiving = False  # a part of a request is here
        self.clogged = False  # its client does not take the answers before its next request
        self.leaving = False  # its last answer is sent
        self.ends_at = 0.0
        self.held = 0


class ReceivingWorker(ThreadWorker):
    """gunicorn's process with threads. Everything added here runs in its main thread."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._alive_thread = ThreadPoolExecutor(1)
        self._waiting: dict[Connection, None] = {}  # the oldest first
        self._held = 0
        self._next_look = 0.0
        self._stops_at = math.inf

    def accept(self, listener: socket.socket) -> None:
        """gunicorn's hook: wait for a new connection's request; the one that waited longest gives way to it."""
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
        # At this limit gunicorn accepts nothing, which is right only while all connections have requests to answer.
        if self.nr_conns >= self.worker_connections:
            self._make_room(connection)

    def enqueue_req(self, conn: TConn) -> None:
        """gunicorn's hook: have a request answered."""
        assert isinstance(conn, Connection)
        pool = self._alive_thread if conn.requests.asks_for(ALIVE) else self.tpool
        answered = pool.submit(self.handle, conn)
        answered.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: TConn, fs: Future[bool]) -> None:
        """gunicorn's hook: a thread has answered, and says whether another request may follow."""
        assert isinstance(conn, Connection)
        try:
            another = not fs.cancelled() and bool(fs.result())
            conn.sock.setblocking(False)
            if another:
                self._next_request(conn)
            else:
                self._leave(conn)
        except Exception:  # as gunicorn does: whatever went wrong, this connection ends
            self._close(conn)

    def handle_request(self, req: Request, conn: TConn) -> bool:
        """gunicorn's hook: answer in a thread; no client keeps it longer than an answer may take."""
        conn.sock.settimeout(ANSWER_SECONDS)
        return super().handle_request(req, conn)

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        """gunicorn's hook: one turn of the main loop."""
        super().wait_for_and_dispatch_events(LOOK_SECONDS)
        now = time.monotonic()
        if not self.alive:
            self._stops_at = min(self._stops_at, now + STOP_SECONDS)
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            for connection in [one for one in self._waiting if min(one.ends_at, self._stops_at) <= now]:
                self._refuse(connection, RequestTimeout() if self.alive else NoRoom())

    def _ready(self, connection: Connection, _: socket.socket) -> None:
        """Handle the event that a connection was waiting for."""
        if connection not in self._waiting:
            return  # it gave way to another one in this turn of the loop
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
        """Give the next request to a thread if it has arrived; wait for the rest of it if not."""
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
        """Hand a complete request to a thread once its client has read most of the earlier answers."""
        self._stop_waiting(connection)
        connection.clogged = not has_room(connection.sock)
        if connection.clogged:
            self._wait(connection, ANSWER_SECONDS, selectors.EVENT_WRITE)
        else:
            self.enqueue_req(connection)

    def _leave(self, connection: Connection) -> None:
        """Shut down the sending side, and wait for the client to close."""
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
        """Close a connection, with an answer that says why if the client has begun a request and can receive one."""
        if connection.requests.begun and not connection.leaving and not connection.clogged:
            self.handle_error(None, connection.sock, connection.client, why)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._stop_waiting(connection)
        self._hold(connection, 0)
        self.nr_conns -= 1
        connection.close()


def has_room(client: socket.socket) -> bool:
    """Whether the kernel can buffer a usual answer at once."""
    poll = select.poll()
    poll.register(client, select.POLLOUT)
    return bool(poll.poll(0))
