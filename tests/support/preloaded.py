"""Run `rowcall` in a fork of a process that has loaded it, because loading takes most of a short command's time.

Each test process has one such server, which ends with it.  Each call is a separate process with its own arguments,
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
from typing import NoReturn

from rowcall.base.child_processes import dies_with_us

# What commands import when they are called.  The fork imports the app, because it knows its name.
MODULES = (
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


class Call:
    """A command that runs in a fork."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[int]) -> None:
        """Begin it, with these descriptors as its standard input, output and error."""
        words = [os.fsdecode(argument) for argument in arguments]
        order = json.dumps([words, dict(environment), str(Path.cwd())]).encode()
        self._words = words
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(str(_server()))
        socket.send_fds(self._line, [len(order).to_bytes(8, "big")], streams)
        self._line.sendall(order)
        self._answers = self._line.makefile("rb")
        self._pid = int(self._answers.readline())

    def wait(self, seconds: float) -> int:
        """Wait until it ends, and return its exit code; kill it after these seconds."""
        self._line.settimeout(seconds)
        try:
            return int(self._answers.readline())
        except TimeoutError:
            os.kill(self._pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(self._words, seconds) from None
        finally:
            self._answers.close()
            self._line.close()


def run(arguments: Sequence[str], environment: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command, and wait until it ends."""
    with (
        Path(os.devnull).open() as stdin,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
    ):
        code = Call(arguments, environment, [stream.fileno() for stream in (stdin, stdout, stderr)]).wait(seconds)
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(["rowcall", *arguments], code, stdout.read(), stderr.read())


@cache
def _server() -> Path:
    """Start this process's server, and return the path of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="rowcall-preloaded-"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE, str(listener.fileno()), json.dumps(sys.path)],
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
serve(listener)
"""


def serve(descriptor: int) -> None:
    """Fork for each order, and report how the fork ended, until the test process is gone."""
    for module in MODULES:
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
    head, descriptors, _, _ = socket.recv_fds(line, 8, 3)
    size, order = int.from_bytes(head, "big"), b""
    while len(order) < size:
        order += line.recv(size - len(order))
    pid = os.fork()
    if pid == 0:
        for opened in (line, listener, events):
            opened.close()
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
        line.sendall(f"{number}\n".encode())


def _become(order: tuple[list[str], dict[str, str], str], streams: list[int]) -> NoReturn:
    arguments, environment, folder = order
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.path[1:1] = [entry for entry in environment.get("PYTHONPATH", "").split(":") if entry]
    sys.argv = ["rowcall", *arguments]
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
