"""An HTTP server that keeps the requests it receives, and answers as a test requests."""

from __future__ import annotations

import http.server
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

# The time between two bytes of a server that drips.
DRIP_SECONDS = 0.02


@dataclass(frozen=True)
class Request:
    """A request that a server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """A reply."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def __bytes__(self) -> bytes:
        head = [f"HTTP/1.1 {self.status} So", f"Content-Length: {len(self.body)}", "Connection: close"]
        head += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*head, "", ""]).encode("latin-1") + self.body


class Exchange:
    """A request in progress, which a behaviour answers."""

    def __init__(self, handler: http.server.BaseHTTPRequestHandler, server: WebServer) -> None:
        self._handler = handler
        self._server = server

    def work(self) -> bytes:
        """Read the request, do what it asks, and return the correct reply as bytes."""
        length = int(self._handler.headers.get("Content-Length", 0))
        body = self._handler.rfile.read(length)
        request = Request(self._handler.command, self._handler.path, dict(self._handler.headers), body)
        return bytes(self._server.take(request))

    def send(self, data: bytes) -> None:
        """Send bytes now."""
        self._handler.wfile.write(data)

    def wait_until_they_hang_up(self) -> None:
        """Send nothing more until the client hangs up."""
        self._handler.rfile.read()


Behaviour = Callable[[Exchange], None]


def behaves(exchange: Exchange) -> None:
    """Do the work, and send the correct reply."""
    exchange.send(exchange.work())


def answers(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Do the work if possible, and send this reply to any request."""

    def behave(exchange: Exchange) -> None:
        exchange.work()
        exchange.send(
            bytes(Reply(status, body, tuple((name.replace("_", "-"), text) for name, text in headers.items())))
        )

    return behave


def leaves_before_reading(exchange: Exchange) -> None:
    """Hang up without reading the body."""


def leaves_before_answering(exchange: Exchange) -> None:
    """Do the work, and hang up."""
    exchange.work()


def says_nothing(exchange: Exchange) -> None:
    """Do the work, and never answer."""
    exchange.work()
    exchange.wait_until_they_hang_up()


def says_half(exchange: Exchange) -> None:
    """Do the work, and hang up before the whole status is sent."""
    exchange.send(exchange.work()[: len("HTTP/1.1 2")])


def says_half_of_the_body(exchange: Exchange) -> None:
    """Do the work, and hang up in the middle of the body."""
    head, _, body = exchange.work().partition(b"\r\n\r\n")
    exchange.send(head + b"\r\n\r\n" + body[: len(body) // 2])


def says_it_twice(exchange: Exchange) -> None:
    """Do the work, and send the reply twice."""
    exchange.send(exchange.work() * 2)


def drips_the_head(exchange: Exchange) -> None:
    """Do the work, and send a head that never ends, byte by byte."""
    exchange.work()
    exchange.send(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    while True:
        exchange.send(b"x")
        time.sleep(DRIP_SECONDS)


def drips_the_body(exchange: Exchange) -> None:
    """Do the work, and send a body that never ends, byte by byte."""
    exchange.work()
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        exchange.send(b" ")
        time.sleep(DRIP_SECONDS)


class WebServer:
    """A server on loopback; `misbehave` sets how it answers the next requests, one behaviour for each."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self.port = 0
        self._behaviours: deque[Behaviour] = deque()

    def misbehave(self, *behaviours: Behaviour) -> None:
        """Answer the next requests with these behaviours, and later ones correctly."""
        self._behaviours.extend(behaviours)

    def take(self, request: Request) -> Reply:
        """Keep a request; a subclass does its work here."""
        self.requests.append(request)
        return Reply(204)

    def meet(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        """Answer the request of one connection."""
        behaviour = self._behaviours.popleft() if self._behaviours else behaves
        behaviour(Exchange(handler, self))


Kind = TypeVar("Kind", bound=WebServer)


@contextmanager
def serving(server: Kind, context: ssl.SSLContext | None = None) -> Iterator[Kind]:
    """Serve at `url` for the block."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.close_connection = True
            server.meet(self)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            pass

    class Notifier(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Ignore clients that give up: these servers are there to provoke that."""

    with Notifier(("127.0.0.1", 0), Handler) as listener:
        if context is not None:
            # The thread of each connection does the handshake, so that a slow one does not block the others.
            listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
        server.port = listener.server_address[1]
        server.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.port}"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": DRIP_SECONDS}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
