"""Run `rowcall` in a fork of a process that has loaded it, because loading takes most of a short command's time.

Each test process has such servers, which end with it.  Each call is a separate process with its own arguments,
environment, folder and output; only what Python reads at its start is the server's.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from rowcall.base.child_processes import dies_with_us

# What commands import when they are called.  The fork imports the app, because it knows its name.
COMMANDS = (
    "rowcall.cli.main",
    "rowcall.cli.access.audit",
    "rowcall.cli.access.keys",
    "rowcall.cli.definitions.command",
    "rowcall.cli.doctor.command",
    "rowcall.cli.effects",
    "rowcall.cli.queues",
    "rowcall.cli.retention.prune",
    "rowcall.cli.runs.command",
    "rowcall.cli.workers",
    "rowcall.definitions.file",
    "rowcall_migrations.baseline",
    "rowcall_migrations.cli",
    "rowcall_worker.cli",
)
# The API has a server of its own: its libraries are large, and each fork copies the map of all memory.
API = ("rowcall.cli.main", "rowcall_api.cli", "gunicorn.workers.gthread")


# The size of each number that a test process and its servers tell each other.
NUMBER_BYTES = 8


class Fork(subprocess.Popen[Any]):
    """A command in a fork, as if this process had started it; only its parent is another one."""

    _child_created = False  # not by this process, so subprocess does not wait for it

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        *,
        stdout: IO[Any] | None = None,
        start_new_session: bool = False,
    ) -> None:
        """Begin it with these descriptors as its standard input, output and error; `stdout` reads its output."""
        self.args = ["rowcall", *map(os.fsdecode, arguments)]
        self.stdin, self.stdout, self.stderr = None, stdout, None
        self.returncode = None
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(str(_server(API if "api" in arguments[:1] else COMMANDS)))
        order = json.dumps([self.args, dict(environment), str(Path.cwd()), start_new_session]).encode()
        socket.send_fds(self._line, [len(order).to_bytes(NUMBER_BYTES, "big")], streams)
        self._line.sendall(order)
        self.pid = self._answer()

    def poll(self) -> int | None:
        """Return its exit code, or None if it still runs."""
        with suppress(BlockingIOError):
            self._end(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends, and return its exit code."""
        try:
            return self._end(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired(self.args, timeout or 0) from None

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:  # noqa: A002
        """Return its output when it has ended."""
        assert self.stdout is not None
        with self.stdout:
            output = self.stdout.read()
        self.wait(timeout)
        return output, None

    def _end(self, timeout: float | None) -> int:
        if self.returncode is None:
            self._line.settimeout(timeout)
            self.returncode = self._answer()
            self._line.close()
        code: int = self.returncode
        return code

    def _answer(self) -> int:
        said = self._line.recv(NUMBER_BYTES, socket.MSG_WAITALL)
        assert len(said) == NUMBER_BYTES, "the process that forks has ended"
        return int.from_bytes(said, "big", signed=True)


def run(arguments: Sequence[str], environment: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command, and wait until it ends."""
    with (
        Path(os.devnull).open() as stdin,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
    ):
        process = Fork(arguments, environment, [stream.fileno() for stream in (stdin, stdout, stderr)])
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(["rowcall", *arguments], code, stdout.read(), stderr.read())


def begin(arguments: Sequence[str], environment: Mapping[str, str]) -> Fork:
    """Begin a command, whose output and errors can be read."""
    reads, writes = os.pipe()
    with Path(os.devnull).open() as stdin, os.fdopen(writes, "wb") as output:
        streams = (stdin.fileno(), output.fileno(), output.fileno())
        return Fork(arguments, environment, streams, stdout=os.fdopen(reads))


@cache
def _server(modules: tuple[str, ...]) -> Path:
    """Start this process's server that has loaded these modules, and return the path of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="rowcall-preloaded-"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE, str(listener.fileno()), json.dumps(sys.path), *modules],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            preexec_fn=dies_with_us(signal.SIGTERM),
        )
    atexit.register(_stop, server, folder)
    return folder / "socket"


def _stop(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.kill()
    server.wait()
    shutil.rmtree(folder)


SERVE = """
import json, sys
listener, path = int(sys.argv[1]), json.loads(sys.argv[2])
sys.path[:] = path
from tests.support.preloaded import serve
serve(listener, sys.argv[3:])
"""


def serve(descriptor: int, modules: Sequence[str]) -> None:
    """Fork for each order, and report how the fork ended, until the test process is gone."""
    for module in modules:
        __import__(module)
    # Collect now: a collection in a fork would copy every page.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as listener, selectors.DefaultSelector() as events:
        events.register(listener, selectors.EVENT_READ, lambda: _accept(listener, events))
        while True:
            for key, _ in events.select():
                key.data()


def _accept(listener: socket.socket, events: selectors.BaseSelector) -> None:
    """Take an order, fork for its command, and wait for the end of that beside other orders."""
    line, _ = listener.accept()
    head, descriptors, _, _ = socket.recv_fds(line, NUMBER_BYTES, 3)
    size, order = int.from_bytes(head, "big"), b""
    while len(order) < size:
        order += line.recv(size - len(order))
    pid = os.fork()
    if pid == 0:
        _become(json.loads(order), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    _say(line, pid)
    ended = os.pidfd_open(pid)
    events.register(ended, selectors.EVENT_READ, lambda: _reap(pid, ended, line, events))


def _reap(pid: int, ended: int, line: socket.socket, events: selectors.BaseSelector) -> None:
    events.unregister(ended)
    os.close(ended)
    _, status = os.waitpid(pid, 0)
    _say(line, os.waitstatus_to_exitcode(status))
    line.close()


def _say(line: socket.socket, number: int) -> None:
    with suppress(OSError):  # the test has stopped waiting
        line.sendall(number.to_bytes(NUMBER_BYTES, "big", signed=True))


def _become(order: tuple[list[str], dict[str, str], str, bool], streams: list[int]) -> NoReturn:
    sys.argv, environment, folder, leads_session = order
    if leads_session:
        os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    # The server's own, and those of other orders.
    os.closerange(3, 1024)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.path[1:1] = [entry for entry in environment.get("PYTHONPATH", "").split(":") if entry]
    code = 1
    try:
        code = _exit_code()
    finally:
        os._exit(code)


def _exit_code() -> int:
    """Run the command, and end it as the interpreter does, but without the deletion of all objects.

    That would copy every page of the fork, and is half of the cost of a short command.
    """
    from rowcall.cli.__main__ import main

    code: object = None
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing does it
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
    return code or 0
