"""Ports for servers that cannot choose a free one themselves."""

from __future__ import annotations

import random
import socket
from contextlib import suppress


def free_port() -> int:
    """Return a free port below those that the kernel gives to clients, which would take it before a server listens."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
