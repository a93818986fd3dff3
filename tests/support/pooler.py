"""PgBouncer, between a test and its database."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.ports import free_port
from tests.support.processes import wait_until

# Debian's folder for it is not on every user's PATH.
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

CONFIG = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pgbouncer(url: str, mode: str, folder: Path) -> Iterator[str]:
    """Run a pooler in this mode in front of a database, and yield the URL that goes through it."""
    assert PROGRAM is not None, "pgbouncer is not installed (Debian: apt-get install pgbouncer)"
    parts = urlsplit(url)
    own_port = free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(
        CONFIG.format(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            password=parts.password,
            own_port=own_port,
            mode=mode,
        )
    )
    # It refuses to run as root, but reads its configuration before it changes the user.
    as_nobody = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([PROGRAM, "-q", *as_nobody, str(config)], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(own_port), "pgbouncer listens")
        yield re.sub(r"@[^/]+/", f"@127.0.0.1:{own_port}/", url)
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
