"""Run `rowcall` in a fork of a process that has loaded it, because loading takes most of a short command's time.

Each test process has one such server, which ends with it.  Each call is a separate process with its own arguments,
environment, folder and output; only what Python reads at its start is the server's.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

from rowcall.base.child_processes import dies_with_us

# Everything that commands import when they are called.  The fork imports the app, because it knows its name.
MODULES = (
    "rowcall.cli.main",
    "rowcall.cli.definitions.command",
    "rowcall.cli.doctor.command",
    "rowcall.cli.runs.command",
    "rowcall.definitions.file",
    "rowcall_migrations.cli",
    "rowcall_worker.cli",
)


def run(arguments: Sequence[str], environment: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command, and wait until it ends."""
    with (
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
        socket.socket(socket.AF_UNIX) as line,
    ):
        line.settimeout(seconds)
        line.connect(str(_server()))
        order = json.dumps(
            [[os.fsdecode(argument) for argument in arguments], dict(environment), str(Path.cwd())]
        ).encode()
        socket.send_fds(line, [len(order).to_bytes(8, "big")], [stdout.fileno(), stderr.fileno()])
        line.sendall(order)
        answers = line.makefile("rb")
        pid = int(answers.readline())
        try:
            code = int(answers.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(arguments), seconds) from None
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
    """Fork for each order, until the test process is gone."""
    for module in MODULES:
        __import__(module)
    # Collect now: a collection in a fork would copy every page.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(fileno=descriptor)
    while True:
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _carry_out(line)
        line.close()


def _carry_out(line: socket.socket) -> None:
    """Fork once more for the command itself, and report how it ended."""
    head, descriptors, _, _ = socket.recv_fds(line, 8, 2)
    size, order = int.from_bytes(head, "big"), b""
    while len(order) < size:
        order += line.recv(size - len(order))
    arguments, environment, folder = json.loads(order)
    pid = os.fork()
    if pid == 0:
        line.close()
        _become(arguments, environment, folder, *descriptors)
    line.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(arguments: list[str], environment: dict[str, str], folder: str, stdout: int, stderr: int) -> NoReturn:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.path[1:1] = [entry for entry in environment.get("PYTHONPATH", "").split(":") if entry]
    sys.argv = ["rowcall", *arguments]
    from rowcall.cli.__main__ import main

    main()
    sys.exit()
