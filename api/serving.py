"""gunicorn, run from code: there is no settings file of its own to keep beside Rowcall's settings."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import flask
from gunicorn.app.base import BaseApplication

from shared.errors import PortInUse
from shared.settings import Settings

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - gunicorn makes a private file of its own in it


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
        """gunicorn's hook: what it serves."""
        return self._flask_app


def listen(host: str, port: int) -> socket.socket:
    """Take the port before anything is started, so that a taken one is told at once and by name."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise PortInUse(
            f"the API cannot listen on {host}:{port}: {error.strerror}; choose another with --port or ROWCALL_API_PORT"
            " (0 takes a free one)"
        ) from None


def options(chosen: Settings, listener: socket.socket) -> dict[str, Any]:
    """gunicorn's options, each with its reason."""
    return {
        # Handed over as a descriptor: no moment between the check of the port and its use.
        "bind": f"fd://{listener.fileno()}",
        # Requests wait for PostgreSQL, not for the processor: few processes, some threads each.
        "worker_class": "gthread",
        "workers": chosen.api_workers,
        "threads": chosen.api_threads,
        # No request of ours takes long; one that does is cut, and its transaction with it.
        "timeout": 30,
        # A deploy lets answers under way be finished, within what supervisors allow before they kill.
        "graceful_timeout": 10,
        "keepalive": 5,
        # In memory: a worker's sign of life must not wait for a slow disk.
        "worker_tmp_dir": str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None,
        # gunicorn's own socket for steering would be a file in the user's home, and nobody needs it.
        "control_socket_disable": True,
        "loglevel": "warning",
        "proc_name": "rowcall api",
    }
