"""JSON values, one per line, between two processes on a socket pair."""

from __future__ import annotations

import json
import selectors
import socket
import threading
from collections.abc import Iterable
from typing import Any, TypeAlias

CHUNK_BYTES = 65536


class Channel:
    """One end of the socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self.open = True
        self._end = end
        self._rest = b""
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """Return the descriptor, for selectors."""
        return self._end.fileno()

    def send(self, value: Any) -> None:
        """Send a value, waiting until there is room for it; safe to call from several threads."""
        with self._lock:
            self._end.sendall(_line(value))

    def offer(self, value: Any) -> bool:
        """Send a short value if there is room; return False if the other side has stopped reading or is gone."""
        try:
            self._end.send(_line(value), socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def read(self) -> list[bytes]:
        """Wait for data and return the complete lines; at the end of the stream, the incomplete one too."""
        try:
            chunk = self._end.recv(CHUNK_BYTES)
        except ConnectionResetError:  # the other side ended without reading everything
            chunk = b""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if chunk:
            return lines
        self.open = False
        return [self._rest] if self._rest else []

    def close(self) -> None:
        """Close this end; the other side notices."""
        self.open = False
        self._end.close()


End: TypeAlias = Channel | socket.socket


def wait(ends: Iterable[End], timeout: float | None) -> list[End]:
    """Wait until some ends have data or were closed by the other side, and return them."""
    with selectors.PollSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ, end)
        return [key.data for key, _ in selector.select(timeout)]


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
