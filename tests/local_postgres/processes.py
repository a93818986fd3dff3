"""Find the processes that use a home, and those that remain in it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psycopg2

import rowcall
from rowcall.local_postgres.home import Home

PATIENCE = 60.0  # seconds; far more than anything here takes, even on a machine that is busy with other tests
PROJECT = Path(rowcall.__file__).parents[1]

# Prints the server that it uses, and uses it until its standard input ends.
USE = """
import json, sys
from pathlib import Path
from rowcall.local_postgres.server import open_server
from rowcall.base.errors import RowcallError
try:
    server = open_server(Path(sys.argv[1]), sys.argv[2], options={"fsync": "off"})
except RowcallError as error:
    print(json.dumps({"error": str(error)}), flush=True)
else:
    print(json.dumps({"url": server.url, "source": server.source, "version": server.version}), flush=True)
    sys.stdin.read()
"""

Found = TypeVar("Found")


def eventually(look: Callable[[], Found]) -> Found:
    """Return the result of `look` as soon as it is true."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, f"still not true: {look}"
        time.sleep(0.02)  # between two checks; no test asserts how long it takes
    return found


def ask(url: str, question: str) -> Any:
    """Return the first value of the server's answer."""
    connection = psycopg2.connect(url, connect_timeout=30)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(question)
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None
    finally:
        connection.close()


def answers(url: str) -> bool:
    """Whether a server answers there now."""
    try:
        return bool(ask(url, "SELECT true"))
    except psycopg2.OperationalError:
        return False


def processes_in(folder: Path) -> dict[int, list[str]]:
    """Return every process that works below this folder or has a file open there, with what it holds."""
    found: dict[int, list[str]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            below = [link for link in _links(process) if link.startswith(f"{folder}/")]
            if below:
                found[int(process.name)] = below
    return found


def keeper_of(home: Path) -> int:
    """Return the process that holds the keeper's lock."""
    lock = str(Home(home).keeper_lock)
    [keeper] = [process for process, held in processes_in(home).items() if lock in held]
    return keeper


def postmaster_of(home: Path) -> int:
    """Return the server's main process."""
    return int((Home(home).data / "postmaster.pid").read_text().partition("\n")[0])


def servers_of(home: Path) -> dict[int, list[str]]:
    """Return all PostgreSQL processes, and what they have open."""
    data = str(Home(home).data)
    return {process: held for process, held in processes_in(home).items() if data in held}


class Script:
    """A Python process that runs one of these scripts."""

    def __init__(
        self,
        code: str,
        arguments: Sequence[str],
        python: str = sys.executable,
        project: Path = PROJECT,
        user: int | None = None,
        group: int | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [python, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=project,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )
        self.pid = self._process.pid

    def report(self) -> dict[str, Any]:
        """Return the next line that it prints."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process ended without a report"
        report: dict[str, Any] = json.loads(line)
        return report

    def kill(self) -> None:
        """Kill it, as the kernel does when memory runs out."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Close its input, and wait until it ends."""
        self._process.communicate()


@contextlib.contextmanager
def script(code: str, *arguments: str, **how: Any) -> Iterator[Script]:
    """Yield a running script, and end it after the block."""
    running = Script(code, arguments, **how)
    try:
        yield running
    finally:
        running.kill()
        running.end()


@contextlib.contextmanager
def user_of(home: Path, source: str = "auto", **how: Any) -> Iterator[Script]:
    """Yield another process that uses the server of this home."""
    with script(USE, str(home), source, **how) as user:
        yield user


def _links(process: Path) -> list[str]:
    links = [process / "cwd"]
    with contextlib.suppress(OSError):  # it has ended, or belongs to another user
        links += (process / "fd").iterdir()
    return [target for link in links if (target := _target(link))]


def _target(link: Path) -> str | None:
    with contextlib.suppress(OSError):  # it has been closed
        return str(link.readlink())
    return None
