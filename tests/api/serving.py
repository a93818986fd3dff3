"""A real `rowcall api`, and requests as raw bytes, which no HTTP library would send."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from rowcall.base.child_processes import own_command
from tests.support import preloaded
from tests.support.processes import LIMIT_SECONDS, starts_alike, wait_until

# The settings of a server with one process and one thread.
ONE_THREAD = {"PATH": "", "ROWCALL_API_WORKERS": "1", "ROWCALL_API_THREADS": "1"}

JSON = "Content-Type: application/json"


@dataclass(frozen=True)
class Heard:
    """A response: status, headers and body; the status is 0 if the server only closed the connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        """Return the JSON object in the body."""
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Server:
    """A running `rowcall api`."""

    process: subprocess.Popen[Any]
    port: int
    log: Path

    def connect(self) -> socket.socket:
        """Connect to the server."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_SECONDS)

    def ask(self, request: bytes) -> Heard:
        """Send these bytes, and read one response."""
        with self.connect() as connection:
            send(connection, request)
            return heard(connection)

    def refuses(self) -> bool:
        """Whether nothing listens on the port any more."""
        try:
            self.connect().close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            return False  # it listened when the connection began, and has just stopped
        return False


@contextmanager
def served(
    environment: Mapping[str, str], folder: Path, rowcall: Sequence[str] | None = None, **settings: str
) -> Iterator[Server]:
    """Yield a server for the block, in a fork or with this command line.

    Its log goes to a file, because a pipe that nobody reads would fill up.
    """
    log = folder / "api.log"
    process = _begun({**environment, "ROWCALL_RATE_LIMIT": "0", "ROWCALL_LOG_FORMAT": "json", **settings}, log, rowcall)
    try:
        wait_until(lambda: b'"api started"' in log.read_bytes() or process.poll() is not None, "the API has started")
        [started] = [json.loads(line) for line in log.read_text().splitlines() if '"api started"' in line]
        server = Server(process, int(started["url"].rsplit(":", 1)[1]), log)
        yield server
    finally:
        process.kill()
        process.wait()


def _begun(environment: Mapping[str, str], log: Path, rowcall: Sequence[str] | None) -> subprocess.Popen[Any]:
    """Begin a server in a session of its own, so that a test can signal the whole group, as a terminal does."""
    words = ("api", "--port", "0")
    with log.open("wb") as output:
        if rowcall is None and starts_alike(environment):
            streams = (0, output.fileno(), output.fileno())
            return preloaded.Fork(words, environment, streams, start_new_session=True)
        command = [*(rowcall or own_command()), *words]
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)


def request(method: str, target: str, key: str, *headers: str, body: bytes = b"") -> bytes:
    """Return an ordinary request, with these parts."""
    length = [f"Content-Length: {len(body)}"] if body else []
    lines = [f"{method} {target} HTTP/1.1", "Host: here", f"Authorization: Bearer {key}", *length, *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def chunked(*chunks: bytes) -> bytes:
    """Return a chunked body with its end."""
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def send(connection: socket.socket, request: bytes) -> None:
    """Send as much as the other side takes: it may respond and close before all is sent."""
    with suppress(ConnectionError):
        connection.sendall(request)


def heard(connection: socket.socket) -> Heard:
    """Read one response, and no byte of the next."""
    with HTTPResponse(connection) as answer:
        # Its own buffer could hold the next response, which would be lost with it.
        answer.fp.close()
        answer.fp = connection.makefile("rb", buffering=1)
        try:
            answer.begin()
            return Heard(answer.status, dict(answer.getheaders()), answer.read())
        except ConnectionError:
            return Heard(0, {}, b"")
