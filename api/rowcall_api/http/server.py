"""gunicorn, run from code, so that it needs no settings file.

docs/api-server.md explains these options to operators.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
from pathlib import Path
from typing import Any

import flask
from gunicorn import util
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.http import errors as refusals

from rowcall.base.settings import Settings
from rowcall_api.http import receiving
from rowcall_api.http.errors import problem_text
from rowcall_api.http.guard import UNSTORED

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - gunicorn makes a private file of its own in it

# In one process, silent ones included; at most half of the files that it may open, because a connection is one.
CONNECTIONS = 1000

# What gunicorn refuses before the application sees it; anything else that it cannot read is a bad request.
REFUSALS = {
    refusals.ExpectationFailed: (417, "Expectation Failed", "this server supports no expectation but 100-continue"),
    receiving.RequestTimeout: (
        408,
        "Request Timeout",
        f"send the whole request within {receiving.REQUEST_SECONDS:g} seconds",
    ),
    receiving.NoRoom: (503, "Service Unavailable", "this server can receive no more requests now; try again"),
    refusals.LimitRequestHeaders: (431, "Request Header Fields Too Large", "send fewer headers, or shorter ones"),
    refusals.LimitRequestLine: (414, "URI Too Long", "send a shorter URL"),
    refusals.UnsupportedTransferCoding: (501, "Not Implemented", "send the body chunked, or with its length"),
}
UNREADABLE = (400, "Bad Request", "this is not a readable HTTP/1.1 request")


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
        """gunicorn's hook: the application."""
        return self._flask_app

    def run(self) -> None:
        """gunicorn's hook: serve until a signal stops it."""
        Master(self).run()


class Master(Arbiter):
    """gunicorn's master, which accepts no more connections once it is stopped.

    The listening socket stays open in each process until its last request is answered.  Without this, a client that
    connects meanwhile would wait for an answer that never comes, instead of trying another server at once.
    """

    def stop(self, graceful: bool = True) -> None:
        """gunicorn's hook: end the processes, gently or at once."""
        for listener in self.LISTENERS:
            with contextlib.suppress(OSError):
                listener.sock.shutdown(socket.SHUT_RDWR)
        super().stop(graceful)


class Worker(receiving.ReceivingWorker):
    """gunicorn's process of threads, with answers as the rest of the API gives them."""

    def init_process(self) -> None:
        """gunicorn's hook: begin, in the new process."""
        self.log.error_log.addFilter(is_no_timeout)
        super().init_process()

    def accept(self, listener: Any) -> None:
        """gunicorn's hook: take a connection, unless the server is about to stop."""
        try:
            super().accept(listener)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """gunicorn's hook: answer requests that never reached the application."""
        if not isinstance(exc, refusals.ParseException):
            super().handle_error(req, client, addr, exc)
            return
        status, title, detail = REFUSALS.get(type(exc), UNREADABLE)
        body = problem_text(status, title, detail)
        headers = {
            "Connection": "close",
            "Content-Type": "application/problem+json",
            "Content-Length": len(body),
            **UNSTORED,
        }
        lines = (f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} {title}\r\n{''.join(lines)}\r\n"
        with contextlib.suppress(OSError):
            util.write_nonblock(client, head.encode() + body)


def is_no_timeout(line: logging.LogRecord) -> bool:
    """Keep every line of gunicorn's log, except timeouts of clients that do not read their answer."""
    return not (line.exc_info and isinstance(line.exc_info[1], TimeoutError))


def options(settings: Settings, listener: socket.socket) -> dict[str, Any]:
    """gunicorn's options, each with its reason."""
    return {
        # Handed over as a descriptor: no moment between the check of the port and its use.
        "bind": f"fd://{listener.fileno()}",
        # Requests wait for PostgreSQL, not for the processor: few processes, some threads each, and a connection to the
        # database for each thread.
        "worker_class": Worker,
        "workers": settings.api_workers,
        "threads": settings.api_threads,
        # While all of them have requests to answer, more connections wait to be accepted (listeners.BACKLOG).
        "worker_connections": min(CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2),
        # A process whose main thread shows no sign of life is replaced.  The threads that answer the requests are not
        # watched: their waits have limits of their own.
        "timeout": 30,
        # A deploy finishes the requests in progress, within what supervisors allow before they kill.
        "graceful_timeout": 10,
        # Longer than a client pauses between two requests, shorter than proxies keep idle connections.
        "keepalive": 5,
        # Processes do not need replacing, and each replacement would cut the connections that are kept open.
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
        # gunicorn's own socket for steering would be a file in the user's home, and it is not used.
        "control_socket_disable": True,
        "loglevel": "warning",
        "proc_name": "rowcall api",
    }
