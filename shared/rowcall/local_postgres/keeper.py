"""The keeper: a small process that owns the server for as long as any process uses it.

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

POLL = 0.2  # seconds between two looks whether anybody still uses the server
FREE_PORTS = 5  # how many free ports are tried, should others be faster in taking them
STEADY = 10.0  # seconds a server must have lived for its death not to count as one of a row
DEATHS = 5  # in a row, after which the server is given up
BACKOFF = 0.05  # seconds before a restart, doubled with each death in the row


@dataclass(frozen=True)
class Order:
    """The starter's order: which server to keep."""

    programs: str
    version: str
    source: str
    port: int  # 0: the one of last time, or any free one
    options: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """The answer to the starter: no error means that the server accepts connections."""

    error: str = ""
    port_in_use: bool = False


class Keeper:
    """Starts the server, restarts it when it dies, and stops it when no process uses it."""

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
        """Start the server on the first port that is free of those it may use."""
        for port in self._ports():
            try:
                self._postmaster = self._start(port)
            except PortInUse:
                if self._order.port:
                    raise
            else:
                return
        raise LocalPostgresError(f"none of {FREE_PORTS} free ports on 127.0.0.1 stayed free: try again")

    def keep(self) -> None:
        """Watch over the server until it is no longer needed, then stop it."""
        try:
            while not self._told and not self._users.try_exclusive():
                if self._postmaster.ended():
                    self._revive()
                time.sleep(POLL)  # nothing tells when the last user releases its lock
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
        """Restart a server that died while in use, on its port, after growing pauses, a limited number of times."""
        self._deaths = 1 if time.monotonic() > self._steady_at else self._deaths + 1
        self._steady_at = math.inf
        if self._deaths > DEATHS:
            raise LocalPostgresError(f"the server died {self._deaths} times in a row and is given up")
        self._withdraw()
        _log(f"the server died and is started again ({self._deaths} of {DEATHS} times in a row)")
        time.sleep(BACKOFF * 2**self._deaths)  # the cause may pass, and nothing tells when
        try:
            self._postmaster = self._start(self._postmaster.port)
        except (RowcallError, OSError) as error:
            _log(str(error))

    def _withdraw(self) -> None:
        with suppress(OSError):  # somebody deleted the home beneath the server
            State.withdraw(self._home.state)


def main() -> None:
    """Detach from the starter, start the server, report to the starter, and keep the server running."""
    home, order = Home(Path(sys.argv[2])), Order(**json.loads(sys.argv[3]))
    if os.fork():  # the starter waits for this process and has no dead child to bury later
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
    """Tell the starter through standard output, and close that: the end is what it waits for."""
    with suppress(BrokenPipeError):  # the starter is gone: nothing uses the server, and it is stopped
        os.write(1, json.dumps(asdict(answer)).encode())
    os.dup2(2, 1)


def _log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC [{os.getpid()}] rowcall: {text}\n")
    sys.stderr.flush()
