"""Connections with one time limit for the whole exchange, however slowly the other side sends.

A timeout of Python's sockets restarts with every byte.  Here each step waits at most for the rest of the total time,
and no longer than one step may take.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from rowcall.base.clock import elapsed

# As much as even a slow line can send within one step.
PIECE_BYTES = 1 << 16

Address = IPv4Address | IPv6Address


class Deadline:
    """When an exchange must be over, and how long each of its steps may wait."""

    def __init__(self, total: float, step: float) -> None:
        self.total = total
        self.step = step
        self._until = elapsed() + total

    def left(self) -> float:
        """Seconds left for the next step; TimeoutError if none are left."""
        left = self._until - elapsed()
        if left <= 0:
            raise TimeoutError(f"it took longer than {self.total:g} seconds")
        return min(left, self.step)

    def patiently(self) -> None:
        """Let each step take all the time that is left."""
        self.step = self.total

    def shorten(self, seconds: float) -> None:
        """Set a shorter limit for all remaining steps together."""
        self._until = min(self._until, elapsed() + seconds)


class TimedSocket(socket.socket):
    """A plain connection under a deadline."""

    deadline: Deadline

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Receive into a buffer, as files made from a socket do."""
        self.settimeout(self.deadline.left())
        return super().recv_into(*args, **kwargs)

    def sendall(self, data: bytes, flags: int = 0, /) -> None:  # type: ignore[override]  # callers here pass only bytes
        """Send in pieces, each with its own timeout; otherwise one timeout would cover all of the data."""
        for begin in range(0, len(data), PIECE_BYTES):
            self.settimeout(self.deadline.left())
            super().sendall(data[begin : begin + PIECE_BYTES], flags)


class TimedTLSSocket(ssl.SSLSocket):
    """An encrypted connection under a deadline."""

    deadline: Deadline

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Receive into a buffer, as files made from a socket do."""
        self.settimeout(self.deadline.left())
        return super().recv_into(*args, **kwargs)

    def send(self, *args: Any, **kwargs: Any) -> int:
        """Send one piece of the data that sendall was given."""
        self.settimeout(self.deadline.left())
        return super().send(*args, **kwargs)


def trusting_the_system() -> ssl.SSLContext:
    """A context that checks host names, and certificates against the authorities of the system or SSL_CERT_FILE."""
    context = ssl.create_default_context()
    context.sslsocket_class = TimedTLSSocket
    return context


def resolve(host: str, port: int, deadline: Deadline) -> list[Address]:
    """All addresses of a host.  The resolver has no time limit, so a thread that can be abandoned calls it."""
    answer: queue.SimpleQueue[list[Address] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.put(list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found)))
        except OSError as error:
            answer.put(error)

    threading.Thread(target=ask, name=f"resolve {host}", daemon=True).start()
    try:
        told = answer.get(timeout=deadline.left())
    except queue.Empty:
        raise TimeoutError(f"the name {host} was not resolved in time") from None
    if isinstance(told, OSError):
        raise told
    return told


def connect(addresses: Sequence[Address], port: int, deadline: Deadline) -> TimedSocket:
    """A connection to the first of these addresses that accepts it; otherwise the error of the last one."""
    failure: OSError = OSError("there is no address to connect to")
    for address in addresses:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        connection = TimedSocket(family, socket.SOCK_STREAM)
        try:
            connection.deadline = deadline
            connection.settimeout(deadline.left())
            connection.connect((str(address), port))
            # A request goes out in two writes, and the second must not wait for the first one's acknowledgement.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure


def secure(connection: TimedSocket, context: ssl.SSLContext, host: str) -> TimedTLSSocket:
    """The same connection with TLS, verified to lead to this host."""
    deadline = connection.deadline
    try:
        connection.settimeout(deadline.left())
        secured = context.wrap_socket(connection, server_hostname=host)
    except OSError:
        connection.close()
        raise
    assert isinstance(secured, TimedTLSSocket)
    secured.deadline = deadline
    return secured
