"""Connects a process to the local server, starting it if necessary, and removes the server with all its data."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType

from rowcall.base.errors import LocalPostgresError, PortInUse
from rowcall.local_postgres import cluster, leftovers
from rowcall.local_postgres.account import ENVIRONMENT, Account, claim
from rowcall.local_postgres.copies import reachable, remove_copies
from rowcall.local_postgres.home import REMOVE, Home, State
from rowcall.local_postgres.keeper import Answer, Order
from rowcall.local_postgres.locks import Lock, LockBusy, exclusive, shared
from rowcall.local_postgres.programs import Programs, find_programs

# Seconds.  A start may copy programs and run initdb and recovery; a stop may write much data to a slow disk.
START_LIMIT = 120.0
STOP_LIMIT = 30.0
JOIN_POLL = 0.02

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

# The keeper can import only the standard library and Rowcall, not site-packages, so that it starts fast.
KEEPER = (
    *("-I", "-S", "-X", "utf8", "-c"),
    "import sys; sys.path.append(sys.argv[1]); from rowcall.local_postgres.keeper import main; main()",
)


@dataclass(frozen=True)
class Server:
    """The local server in use by this process; the server runs as long as any process uses it.

    A forked child uses it too: the server runs until parent and children have all closed it or ended.
    """

    url: str = field(repr=False)
    port: int
    version: str
    programs: Path
    source: str
    log: Path
    _use: Lock = field(repr=False)

    def close(self) -> None:
        """Stop using the server in this process; closing it again does nothing."""
        self._use.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_server(home: Path, source: str = "auto", port: int = 0, options: Mapping[str, str] = NO_OPTIONS) -> Server:
    """Use the local server of this home; create and start it if necessary.

    `port` 0 means the last port, or any free one.  `options` are server settings; they and `source` only have an effect
    if this call starts the server.
    """
    place = Home(home.absolute())
    try:
        place.refuse_data_of_others()
        with _turn(place), contextlib.ExitStack() as undo:
            use = undo.enter_context(shared(place.users_lock, STOP_LIMIT))
            state = _running(place, source, port, options)
            undo.pop_all()
    except LockBusy:
        raise LocalPostgresError(
            f"the local server in {place.folder} takes too long to start or stop: see {place.log}"
        ) from None
    except OSError as error:
        raise _unusable(place, error) from error
    return Server(state.url, state.port, state.version, Path(state.programs), state.source, place.log, use)


def remove(home: Path) -> None:
    """Delete the local server with all its files; raise an error if a process uses it."""
    place = Home(home.absolute())
    try:
        if any(os.path.lexists(path) for path in place.everything):
            with _turn(place):
                _refuse_if_used(place)
                with exclusive(place.keeper_lock, STOP_LIMIT), leftovers.wait_out(place):
                    for path in place.everything:
                        cluster.clear(path)
        remove_copies()
    except LockBusy:
        raise LocalPostgresError(
            f"the local server in {place.folder} does not stop, so it is not removed: see {place.log}"
        ) from None
    except OSError as error:
        raise _unusable(place, error) from error


def _turn(place: Home) -> Lock:
    """Take the lock for starting, joining or removing the server; only one process at a time can hold it."""
    while True:
        place.prepare()
        with contextlib.suppress(FileNotFoundError):  # the previous holder of the lock has just removed the folder
            return exclusive(place.start_lock, START_LIMIT)


def _refuse_if_used(place: Home) -> None:
    with Lock(place.users_lock) as users:
        # Users hold the lock shared.  A keeper that is stopping the server holds it exclusively, and soon ends.
        if not users.try_exclusive() and users.try_shared() and not users.try_exclusive():
            raise LocalPostgresError(
                f"the local server in {place.folder} is in use, so it is not removed:"
                " end the processes that use it (rowcall up, workers), then try again"
            )


def _running(place: Home, source: str, port: int, options: Mapping[str, str]) -> State:
    """Return how to reach the running server; start it if no keeper is alive."""
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        with contextlib.suppress(LockBusy), exclusive(place.keeper_lock, 0) as lock:
            _start(place, source, port, options, lock)
        state = State.read(place.state)
        if state is not None and state.running:
            _refuse_other_port(place, state.port, port)
            return state
        time.sleep(JOIN_POLL)  # another process is starting the server; there is no event when it is ready
    raise LockBusy


def _refuse_other_port(place: Home, port: int, asked: int) -> None:
    if asked not in (0, port):
        raise LocalPostgresError(
            f"the local server in {place.folder} is already running on port {port}, but ROWCALL_POSTGRES_PORT is"
            f" {asked}: unset it, or first end the processes that use the server"
        )


def _start(place: Home, source: str, port: int, options: Mapping[str, str], keeper_lock: Lock) -> None:
    """Create the cluster if there is none, and start a keeper, which starts the server."""
    State.withdraw(place.state)
    account = claim(place.cluster)
    programs, copy = reachable(_choose(place, source, account), account)
    with copy or contextlib.nullcontext():
        if not place.data.exists():
            with leftovers.wait_out(place) as lock:
                cluster.make(place, programs, account, options.get("fsync") != "off", lock)
        order = Order(str(programs.folder), programs.version, programs.source, port, dict(options))
        # The keeper inherits its lock, so a second one cannot start in between.
        answer = _launch(place, order, [lock.fileno() for lock in (keeper_lock, copy) if lock is not None])
    if answer.error:
        raise PortInUse(answer.error) if answer.port_in_use else LocalPostgresError(answer.error)


def _choose(place: Home, source: str, account: Account) -> Programs:
    major = place.major()
    try:
        return find_programs(source, major, account)
    except LocalPostgresError as error:
        if major is None:
            raise
        raise LocalPostgresError(
            f"the data in {place.data} was created by PostgreSQL {major}, and {error}; or run {REMOVE}"
        ) from error


def _launch(place: Home, order: Order, inherited: list[int]) -> Answer:
    """Start the keeper, and wait for its answer."""
    root = Path(__file__).parents[2]
    log = place.open_log()
    try:
        process = subprocess.Popen(
            [sys.executable, *KEEPER, str(root), str(place.folder), json.dumps(asdict(order))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env=ENVIRONMENT,
            start_new_session=True,
            pass_fds=inherited,
        )
    finally:
        os.close(log)
    with process:
        said = _read_all(process)
    if not said:
        return Answer(f"the process that starts the local server has died or is hanging: see {place.log}")
    return Answer(**json.loads(said))


def _read_all(process: subprocess.Popen[bytes]) -> bytes:
    """Read the keeper's standard output until the keeper closes it."""
    assert process.stdout is not None
    ready = select.poll()
    ready.register(process.stdout)
    deadline = time.monotonic() + START_LIMIT
    said = b""
    while ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            break
        said += part
    return said


def _unusable(place: Home, error: OSError) -> LocalPostgresError:
    where = f"{error.filename}: " if error.filename else ""
    return LocalPostgresError(
        f"the local server cannot use {place.folder} ({where}{error.strerror or error}):"
        " set ROWCALL_HOME to a folder that you can write to, or DATABASE_URL to a running server"
    )
