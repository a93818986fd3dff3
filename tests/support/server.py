"""A PostgreSQL of a test's own, which it may stop, kill and start again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rowcall.local_postgres import leftovers
from rowcall.local_postgres.account import claim
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.postmaster import Postmaster
from rowcall.local_postgres.server import open_server
from tests.support.processes import wait_until
from tests.support.superuser import let_do_all

# What was committed outlives the server's processes.  It need not outlive the machine, so no disk is waited for.
LASTING = {"fsync": "off"}


class OwnServer:
    """A server that nobody keeps: the local one's cluster and programs, started and ended by the test."""

    def __init__(self, folder: Path) -> None:
        with open_server(folder, options=LASTING) as made:
            self.url = let_do_all(folder, made.url)
            self._port = made.port
            self._programs = made.programs
        self._home = Home(folder)
        self.start()

    def restart(self, number: signal.Signals) -> None:
        """End it as this signal does, and start it again: SIGINT stops it, SIGQUIT and SIGKILL make it recover."""
        self.kill(number)
        self.start()

    def kill(self, number: signal.Signals) -> None:
        """End it as this signal does."""
        process = int((self._home.data / "postmaster.pid").read_text().partition("\n")[0])
        os.kill(process, number)
        wait_until(self._postmaster.ended, "the server has ended")

    def stop(self) -> None:
        """End it for good."""
        self._postmaster.stop()

    def start(self) -> None:
        """Start it again."""
        # The lock is free when the last process of the server before is gone.
        with leftovers.wait_out(self._home) as lock:
            account = claim(self._home.cluster)
            self._postmaster = Postmaster.start(self._home, self._programs, account, self._port, LASTING, lock)
        self._postmaster.wait_until_ready(lambda: False)


@contextmanager
def own_server(folder: Path) -> Iterator[OwnServer]:
    """A server that runs for as long as the block."""
    server = OwnServer(folder)
    try:
        yield server
    finally:
        server.stop()
