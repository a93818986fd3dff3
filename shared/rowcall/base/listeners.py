"""Ports that a process listens on, for itself or for a child that it starts."""

from __future__ import annotations

import socket

from rowcall.base.errors import PortInUse

# Connections that wait to be accepted.  The kernel does not answer more than these, so that their clients try again or
# elsewhere, instead of waiting for an answer that comes after they have given up.
BACKLOG = 256


def listen(host: str, port: int) -> socket.socket:
    """Open a port, 0 for a free one, before anything else starts: one in use is reported at once."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]  # Python repeats the address
        raise PortInUse(
            f"the API cannot listen on {host}:{port}: {reason}; choose another with --port or ROWCALL_API_PORT"
            " (0 picks a free port)"
        ) from None


def url_of(listener: socket.socket, host: str) -> str:
    """Where clients on this host find it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
