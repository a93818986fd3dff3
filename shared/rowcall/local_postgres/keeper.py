"""The keeper: a small process that runs the server as long as any process uses it.

It outlives the process that started it.  Its lock shows that it is alive; the users' lock shows whether it is needed.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from rowcall.base.errors import LocalPostgresError, PortInUse, RowcallError
from rowcall.local_postgres import cluster, leftovers
from rowcall.local_postgres.account import claim
from rowcall.local_postgres.home import Home, State
from rowcall.local_postgres.locks import Lock
from rowcall.local_postgres.postmaster import Postmaster

POLL = 0.2  # seconds between checks whether a process still uses the server
FREE_PORTS = 5  # how many free ports to try, because other programs may take them first
STEADY = 10.0  # seconds after which a server counts as stable, and its next crash as the first in a row
DEATHS = 5  # how many crashes in a row are tolerated
BACKOFF = 0.05  # seconds before a restart, doubled with each crash in a row


@dataclass(frozen=True)
class Order:
    """The request of the starting process: which server to run."""

    programs: str
    version: str
    source: str
    port: int  # 0: the last one, or any free one
    options: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """The answer to the starting process; without an error, the server accepts connections."""

    error: str = ""
    port_in_use: bool = False


class Keeper:
    """Starts the server, restarts it after a crash, and stops it when no process uses it."""

    def __init__(self, home: Home, order: Order) -> None:
        self._home = home
        self._order = order
        self._account = claim(home.cluster)
        self._users = Lock(home.users_lock)
        self._deaths = 0
        self._steady_at = math.inf
        self._told = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._tell)

    def start(self) -> None:
        """Start the server on the first of its possible ports that is free."""
        for port in self._ports():
            try:
                self._postmaster = self._start(port)
            except PortInUse:
                if self._order.port:
                    raise
            else:
                return
        raise LocalPostgresError(
            f"other programs took {FREE_PORTS} free ports on 127.0.0.1 before the server could: try again"
        )

    def keep(self) -> None:
        """Keep the server running until no process uses it, then stop it."""
        try:
            while not self._told and not self._users.try_exclusive():
                if self._postmaster.ended():
                    self._revive()
                time.sleep(POLL)  # there is no event when the last user releases its lock
        finally:
            self._withdraw()
            self._postmaster.stop()

    def _tell(self, number: int, frame: FrameType | None) -> None:
        self._told = True

    def _ports(self) -> Iterator[int]:
        if self._order.port:
            yield self._order.port
            return
        last = State.read(self._home.state)
        if last is not None:
            yield last.port
        for _ in range(FREE_PORTS):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port: int = probe.getsockname()[1]
            yield port

    def _start(self, port: int) -> Postmaster:
        order = self._order
        url = cluster.url(self._home, port)
        with leftovers.wait_out(self._home) as lock:
            postmaster = Postmaster.start(self._home, Path(order.programs), self._account, port, order.options, lock)
        try:
            postmaster.wait_until_ready(lambda: self._told)
            State(True, port, url, order.version, order.programs, order.source).write(self._home.state)
        except BaseException:
            postmaster.stop()
            raise
        self._steady_at = time.monotonic() + STEADY
        return postmaster

    def _revive(self) -> None:
        """Restart a crashed server on the same port, after growing pauses, a limited number of times."""
        self._deaths = 1 if time.monotonic() > self._steady_at else self._deaths + 1
        self._steady_at = math.inf
        if self._deaths > DEATHS:
            raise LocalPostgresError(f"the server crashed {self._deaths} times in a row and will not be restarted")
        self._withdraw()
        _log(f"the server crashed and will be restarted ({self._deaths} of {DEATHS} times in a row)")
        time.sleep(BACKOFF * 2**self._deaths)  # the cause may pass, and there is no event for that
        try:
            self._postmaster = self._start(self._postmaster.port)
        except (RowcallError, OSError) as error:
            _log(str(error))

    def _withdraw(self) -> None:
        with suppress(OSError):  # somebody has deleted the home of the running server
            State.withdraw(self._home.state)


def main() -> None:
    """Detach from the starting process, start the server, report the result, and keep the server running."""
    home, order = Home(Path(sys.argv[2])), Order(**json.loads(sys.argv[3]))
    if os.fork():  # the starting process waits for this one, so no zombie remains
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        keeper = Keeper(home, order)
        keeper.start()
    except RowcallError as error:
        _answer(Answer(str(error), isinstance(error, PortInUse)))
        sys.exit(1)
    except OSError as error:
        _answer(Answer(f"the local server could not be started in {home.folder}: {error}"))
        sys.exit(1)
    _answer(Answer())
    try:
        keeper.keep()
    except RowcallError as error:
        _log(str(error))
        sys.exit(1)


def _answer(answer: Answer) -> None:
    """Write the answer to standard output, and close that, because the starting process reads to its end."""
    with suppress(BrokenPipeError):  # the starting process is gone; keep() stops the server if no other process uses it
        os.write(1, json.dumps(asdict(answer)).encode())
    os.dup2(2, 1)


def _log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC [{os.getpid()}] rowcall: {text}\n")
    sys.stderr.flush()
