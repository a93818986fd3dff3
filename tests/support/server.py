"""A PostgreSQL server for one test, which may stop, kill and restart it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rowcall.base import database
from rowcall.local_postgres import leftovers
from rowcall.local_postgres.account import claim
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.postmaster import Postmaster
from rowcall.local_postgres.server import open_server
from tests.support.processes import wait_until
from tests.support.superuser import let_do_all

# A commit must survive the end of the server's processes, but not of the machine, so no disk is waited for.
LASTING = {"fsync": "off"}


class OwnServer:
    """A server that only the test starts and ends; its cluster and programs are those of a local server."""

    def __init__(self, folder: Path) -> None:
        with open_server(folder, options=LASTING) as made:
            self.url = let_do_all(folder, made.url)
            self._port = made.port
            self._programs = made.programs
        self._home = Home(folder)
        self.start()

    def restart(self, number: signal.Signals) -> None:
        """Send it this signal and start it again: SIGINT stops it cleanly, SIGQUIT and SIGKILL make it recover."""
        self.kill(number)
        self.start()

    def kill(self, number: signal.Signals) -> None:
        """Send it this signal, and wait until it has ended."""
        process = int((self._home.data / "postmaster.pid").read_text().partition("\n")[0])
        os.kill(process, number)
        wait_until(self._postmaster.ended, "the server has ended")

    def stop(self) -> None:
        """Stop it."""
        self._postmaster.stop()

    def start(self) -> None:
        """Start it again."""
        # The lock is free when the last process of the previous server is gone.
        with leftovers.wait_out(self._home) as lock:
            account = claim(self._home.cluster)
            self._postmaster = Postmaster.start(self._home, self._programs, account, self._port, LASTING, lock)
        self._postmaster.wait_until_ready(lambda: False)


@contextmanager
def own_server(folder: Path) -> Iterator[OwnServer]:
    """Yield a server, and stop it after the block."""
    server = OwnServer(folder)
    try:
        yield server
    finally:
        server.stop()


def let_connect(server_url: str, url: str, allowed: bool) -> None:
    """Let the database accept new connections, or refuse them, like one that is unavailable."""
    connection = database.connect(server_url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {url.rpartition('/')[2].partition('?')[0]} ALLOW_CONNECTIONS {allowed}")
    connection.close()
