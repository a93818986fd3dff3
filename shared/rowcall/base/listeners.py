"""Opens the ports that a process listens on, for itself or for a child process."""

from __future__ import annotations

import socket

from rowcall.base.errors import PortInUse

# The number of connections that may wait to be accepted.  The kernel leaves further ones unanswered, so their
# clients try again or try another server, instead of waiting for a response that comes after they have given up.
BACKLOG = 256


API_REMEDY = "choose another with --port or ROWCALL_API_PORT (0 picks a free port)"


def listen(host: str, port: int, who: str = "the API", remedy: str = API_REMEDY) -> socket.socket:
    """Open a port (0 picks a free one); called before anything else starts, so that a port in use is reported first."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]  # Python repeats the address
        raise PortInUse(f"{who} cannot listen on {host}:{port}: {reason}; {remedy}") from None


def url_of(listener: socket.socket, host: str) -> str:
    """Return the listener's URL for clients on this host."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
