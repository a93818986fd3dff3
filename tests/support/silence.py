"""A network between a worker and its database that can fall silent: it accepts everything and answers nothing."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

CHUNK_BYTES = 65536


class Wire:
    """One connection through the network."""

    def __init__(self, client: socket.socket, server: socket.socket, flows: threading.Event) -> None:
        self._silent = False
        self._flows = flows
        self._carrying = threading.Lock()
        self._ends = (client, server)
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def fall_silent(self) -> None:
        """Stop carrying data."""
        with self._carrying:
            self._silent = True

    def cut(self) -> None:
        """Close both ends."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                self._flows.wait()
                with self._carrying:
                    if not self._silent:
                        target.sendall(chunk)
            if not self._silent:
                target.shutdown(socket.SHUT_WR)


class Network:
    """Carries data between the database's server and the clients that connect to `url`."""

    def __init__(self, url: str, listening: socket.socket | None = None) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listening = listening or socket.create_server(("127.0.0.1", 0))
        host, port = self._listening.getsockname()
        self.url = re.sub(r"@[^/]+/", f"@{host}:{port}/", url)
        self.wires: list[Wire] = []
        self.drops = 0
        # Data waits while this is clear, and is then carried.
        self.flows = threading.Event()
        self.flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Stop carrying data on all present connections; new connections work."""
        for wire in self.wires:
            wire.fall_silent()

    def drop(self, count: int) -> None:
        """Close this many new connections at once."""
        self.drops = count

    def close(self) -> None:
        """Cut every wire."""
        self._listening.close()
        for wire in self.wires:
            wire.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.drops:
                    self.drops -= 1
                    client.close()
                    continue
                self.wires.append(Wire(client, socket.create_connection(self._server), self.flows))


@contextmanager
def network(url: str) -> Iterator[Network]:
    """Yield a network in front of this database for the block."""
    made = Network(url)
    try:
        yield made
    finally:
        made.close()
