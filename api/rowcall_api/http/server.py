"""gunicorn, run from code: there is no settings file of its own to keep beside Rowcall's settings.

docs/api-server.md tells operators what is chosen here.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import struct
from pathlib import Path
from typing import Any

import flask
from gunicorn import util
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.http import errors as refusals
from gunicorn.workers.gthread import TConn, ThreadWorker

from rowcall.base.errors import PortInUse
from rowcall.base.settings import Settings
from rowcall_api.http.errors import problem_text

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - gunicorn makes a private file of its own in it

# Connections that wait to be let in.  What does not fit is not answered by the kernel either, so that its client tries
# again or elsewhere, instead of waiting for an answer that comes when it has given up.
BACKLOG = 256

# A client that neither sends nor takes anything for so long is gone, and must not keep a thread.
CLIENT_SECONDS = 10

# What gunicorn refuses before the application sees it; whatever else it cannot read is a bad request.
REFUSALS = {
    refusals.ExpectationFailed: (417, "Expectation Failed", "this server knows no expectation but 100-continue"),
    refusals.LimitRequestHeaders: (431, "Request Header Fields Too Large", "send fewer headers, or shorter ones"),
    refusals.LimitRequestLine: (414, "URI Too Long", "send a shorter URL"),
    refusals.UnsupportedTransferCoding: (501, "Not Implemented", "send the body chunked, or with its length"),
}
UNREADABLE = (400, "Bad Request", "this is no HTTP/1.1 request that can be read")


class Server(BaseApplication):
    """gunicorn with an application and options given as objects."""

    def __init__(self, app: flask.Flask, options: dict[str, Any]) -> None:
        self._flask_app = app
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """gunicorn's hook: where its options come from."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """gunicorn's hook: what it serves."""
        return self._flask_app

    def run(self) -> None:
        """gunicorn's hook: serve until told to stop."""
        Master(self).run()


class Master(Arbiter):
    """gunicorn's master, which lets nobody in any more from the moment it is told to stop.

    The listening socket stays open in each process until that has answered its last request.  Without this, whoever
    connects meanwhile would wait for an answer that never comes, instead of trying another server at once.
    """

    def stop(self, graceful: bool = True) -> None:
        """gunicorn's hook: end the processes, gently or at once."""
        for listener in self.LISTENERS:
            with contextlib.suppress(OSError):
                listener.sock.shutdown(socket.SHUT_RDWR)
        super().stop(graceful)


class Worker(ThreadWorker):
    """gunicorn's process of threads, with answers as the rest of the API gives them, and an end to silent clients."""

    def init_process(self) -> None:
        """gunicorn's hook: begin, in the new process."""
        self.log.error_log.addFilter(is_no_silence)
        super().init_process()

    def accept(self, listener: Any) -> None:
        """gunicorn's hook: take a connection, unless the server is about to stop."""
        try:
            super().accept(listener)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def enqueue_req(self, conn: TConn) -> None:
        """gunicorn's hook: hand a connection with a request to a thread."""
        end_silence(conn.sock, CLIENT_SECONDS)
        super().enqueue_req(conn)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """gunicorn's hook: answer what never reached the application."""
        if not isinstance(exc, refusals.ParseException):
            super().handle_error(req, client, addr, exc)
            return
        status, title, detail = REFUSALS.get(type(exc), UNREADABLE)
        body = problem_text(status, title, detail)
        head = (
            f"HTTP/1.1 {status} {title}\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            util.write_nonblock(client, head.encode() + body)


def end_silence(connection: socket.socket, seconds: float) -> None:
    """Let a blocking read or write fail when nothing has moved for so long."""
    length = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, length)


def is_no_silence(line: logging.LogRecord) -> bool:
    """Whether a line of gunicorn's log tells of anything but a client that fell silent, which is no error of ours."""
    return not (line.exc_info and isinstance(line.exc_info[1], BlockingIOError))


def listen(host: str, port: int) -> socket.socket:
    """Take the port before anything is started, so that a taken one is told at once and by name."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        raise PortInUse(
            f"the API cannot listen on {host}:{port}: {error.strerror}; choose another with --port or ROWCALL_API_PORT"
            " (0 takes a free one)"
        ) from None


def options(chosen: Settings, listener: socket.socket) -> dict[str, Any]:
    """gunicorn's options, each with its reason."""
    return {
        # Handed over as a descriptor: no moment between the check of the port and its use.
        "bind": f"fd://{listener.fileno()}",
        # Requests wait for PostgreSQL, not for the processor: few processes, some threads each, and a connection to the
        # database for each thread.
        "worker_class": Worker,
        "workers": chosen.api_workers,
        "threads": chosen.api_threads,
        # Of one process, with those that are only kept open.  What comes on top waits to be let in (BACKLOG).
        "worker_connections": 256,
        # A process whose main thread shows no sign of life is replaced.  Its other threads, which answer the requests,
        # are not watched: what those wait for has an end of its own.
        "timeout": 30,
        # A deploy lets answers under way be finished, within what supervisors allow before they kill.
        "graceful_timeout": 10,
        # Longer than a client takes between two requests, shorter than proxies keep what they do not use.
        "keepalive": 5,
        # No process gets old enough to need replacing, and each replacement would cut the connections that it keeps.
        "max_requests": 0,
        # A filter, a cursor and a search fit into a line of 8 KiB; a hundred headers are more than proxies add.
        "limit_request_line": 8190,
        "limit_request_fields": 100,
        "limit_request_field_size": 8190,
        # No header changes what a path means or who is trusted: nothing here needs to know of a proxy.
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        # In memory: a worker's sign of life must not wait for a slow disk.
        "worker_tmp_dir": str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None,
        # gunicorn's own socket for steering would be a file in the user's home, and nobody needs it.
        "control_socket_disable": True,
        "loglevel": "warning",
        "proc_name": "rowcall api",
    }
