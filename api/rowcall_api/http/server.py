"""Runs gunicorn without a settings file.

docs/api-server.md explains these options to operators.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import signal
import socket
from collections.abc import Iterable
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

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - gunicorn creates a private file in it

# Per process, including idle ones; at most half of the files that the process may open, because each connection is one.
CONNECTIONS = 1000

# Errors that gunicorn raises before the application sees the request; all others are UNREADABLE.
REFUSALS = {
    refusals.ExpectationFailed: (417, "Expectation Failed", "this server supports only the expectation 100-continue"),
    receiving.RequestTimeout: (
        408,
        "Request Timeout",
        f"send the whole request within {receiving.REQUEST_SECONDS:g} seconds",
    ),
    receiving.NoRoom: (503, "Service Unavailable", "this server cannot receive more requests now; try again"),
    refusals.LimitRequestHeaders: (431, "Request Header Fields Too Large", "send fewer or shorter headers"),
    refusals.LimitRequestLine: (414, "URI Too Long", "send a shorter URL"),
    refusals.UnsupportedTransferCoding: (501, "Not Implemented", "send the body chunked, or with its length"),
}
UNREADABLE = (400, "Bad Request", "this is not a valid HTTP/1.1 request")


class Server(BaseApplication):
    """gunicorn with its application and options passed as objects."""

    def __init__(self, app: flask.Flask, options: dict[str, Any]) -> None:
        self._flask_app = app
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """Set the options (gunicorn's hook)."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application (gunicorn's hook)."""
        return self._flask_app

    def run(self) -> None:
        """Serve until a signal stops it (gunicorn's hook)."""
        Master(self).run()


class Master(Arbiter):
    """gunicorn's master, changed to refuse connections as soon as it stops.

    The listening socket stays open in each process until its last response is sent.  If it still accepted connections,
    a client would wait for a response that never comes instead of trying another server at once.
    """

    def init_signals(self) -> None:
        """Handle signals (gunicorn's hook), except SIGHUP if nohup set it to be ignored."""
        hangup = signal.getsignal(signal.SIGHUP)
        super().init_signals()
        if hangup is signal.SIG_IGN:
            signal.signal(signal.SIGHUP, hangup)

    def handle_hup(self) -> None:
        """Stop gracefully, because the terminal has closed (gunicorn's hook); there is no configuration to reload."""
        self.handle_term()

    def handle_int(self) -> None:
        """Stop gracefully on Ctrl-C (gunicorn's hook); gunicorn ends all processes on a second one."""
        self.handle_term()

    def stop(self, graceful: bool = True) -> None:
        """Stop the processes, gracefully or at once (gunicorn's hook)."""
        refuse_connections(self.LISTENERS)
        super().stop(graceful)


class Worker(receiving.ReceivingWorker):
    """gunicorn's threaded worker, which also returns its own errors as problem documents."""

    def init_signals(self) -> None:
        """Handle signals (gunicorn's hook), but leave to the master those that a terminal sends to all processes."""
        hangup = signal.getsignal(signal.SIGHUP)
        super().init_signals()
        # Not SIG_IGN, unless nohup has set it: programs started by an app's route would inherit that.
        signal.signal(signal.SIGHUP, hangup if hangup is signal.SIG_IGN else lambda *_: None)
        signal.signal(signal.SIGINT, lambda *_: None)

    def init_process(self) -> None:
        """Initialize the new process (gunicorn's hook)."""
        self.log.error_log.addFilter(is_no_timeout)
        super().init_process()

    def is_parent_alive(self) -> bool:
        """Return whether the master is alive (gunicorn's hook); if not, stop as on SIGTERM."""
        if super().is_parent_alive():
            return True
        refuse_connections(self.sockets)
        self.alive = False  # gunicorn only leaves its loop, so waiting requests would keep waiting
        return False

    def accept(self, listener: Any) -> None:
        """Accept a connection (gunicorn's hook); ignore the error of a socket that `refuse_connections` shut down."""
        try:
            super().accept(listener)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Respond to requests that never reached the application (gunicorn's hook)."""
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


def refuse_connections(listeners: Iterable[Any]) -> None:
    """Shut these sockets down for all processes that share them."""
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.sock.shutdown(socket.SHUT_RDWR)


def is_no_timeout(line: logging.LogRecord) -> bool:
    """Return False for log lines about clients that do not read their response in time."""
    return not (line.exc_info and isinstance(line.exc_info[1], TimeoutError))


def options(settings: Settings, listener: socket.socket) -> dict[str, Any]:
    """Return gunicorn's options, each with its reason."""
    return {
        # Passed as a descriptor, so that nobody can take the port between its check and its use.
        "bind": f"fd://{listener.fileno()}",
        # Requests mostly wait for PostgreSQL, not for the processor.  Hence few processes with some threads each, and
        # one database connection per thread plus one per process.
        "worker_class": Worker,
        "workers": settings.api_workers,
        "threads": settings.api_threads,
        # When all of these have requests in progress, further connections wait in the backlog (listeners.BACKLOG).
        "worker_connections": min(CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2),
        # A process whose main thread does not respond is replaced.  The request threads are not watched, because their
        # waits have their own limits.
        "timeout": 30,
        # A deploy finishes the requests in progress before supervisors lose patience and kill the process.
        "graceful_timeout": 10,
        # Longer than clients pause between requests, shorter than proxies keep idle connections.
        "keepalive": 5,
        # Never replace a process after a number of requests: that would close its keep-alive connections.
        "max_requests": 0,
        # 8 KiB hold a filter, a cursor and a search; a hundred headers are more than proxies add.
        "limit_request_line": 8190,
        "limit_request_fields": 100,
        "limit_request_field_size": 8190,
        # No header changes the meaning of a path or the client's address; client_address.py handles proxies.
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        # In memory, so that the heartbeat of a process never waits for a slow disk.
        "worker_tmp_dir": str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None,
        # gunicorn's control socket is unused, and would be a file in the user's home.
        "control_socket_disable": True,
        "loglevel": "warning",
        "proc_name": "rowcall api",
    }
