"""One system under test: a program in its own environment, on its own database of the server that all share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from rowcall.base import database
from tests.bench.costs import FINISHED
from tests.bench.measures import asked
from tests.bench.peers.install import HOME, NODE, python_of
from tests.support.processes import ROOT

PROGRAMS = Path(__file__).parent / "programs"

# How long a program may take for anything.
LIMIT_SECONDS = 300
STEP_SECONDS = 0.005
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Peer:
    """A system: how its program is started, and how its table shows that jobs are left."""

    name: str
    command: Sequence[str | Path]
    unfinished: str
    worker: Mapping[str, Any] = field(default_factory=dict)
    # Inserts finished jobs, if it keeps them.
    earlier: str = ""
    # Options of every command of the program.
    always: Mapping[str, Any] = field(default_factory=dict)
    # The program that enqueues now and then, if not its own.
    paced: Sequence[str | Path] = ()

    def url(self, server: str) -> str:
        """Return the URL of its database on this server."""
        return make_url(server).set(database=f"peer_{self.name.replace('-', '_')}").render_as_string(False)

    def fresh(self, server: str) -> None:
        """Give it an empty database with its own tables."""
        name = make_url(self.url(server)).database
        asked(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        asked(server, f"CREATE DATABASE {name}")
        with tempfile.TemporaryDirectory() as folder:
            finished(self.start(server, Path(folder), "setup"))

    def start(self, server: str, folder: Path, command: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start its program."""
        environment = {
            **os.environ,
            "DATABASE_URL": self.url(server),
            "BENCH_FOLDER": str(folder),
            "BENCH_PACKAGES": str(HOME / "node"),
            "ROWCALL_APP": "bench_app",
            "PYTHONPATH": f"{PROGRAMS}:{ROOT}",
            "NODE_ENV": "production",
            "ROWCALL_LOG_LEVEL": "error",
        }
        program = self.paced if command == "paced" and self.paced else self.command
        words = [*program, command, json.dumps({**self.always, **options})]
        return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)

    def rate(self, server: str, command: str, **options: Any) -> float:
        """Return how many jobs a second it enqueues."""
        self.fresh(server)
        return self.enqueued(server, command, **options)

    def enqueued(self, server: str, command: str, **options: Any) -> float:
        """Enqueue jobs, and return how many a second."""
        with tempfile.TemporaryDirectory() as folder:
            finished(self.start(server, Path(folder), command, **options))
            return float(written(folder, "rate"))

    def drained(self, server: str, jobs: int, processes: int, history: int = 0) -> float:
        """Return how many jobs a second its workers perform, from the first call of a handler until none is left.

        Its table has as many finished jobs as `history` says, from earlier days.
        """
        self.fresh(server)
        if history:
            asked(self.url(server), self.earlier.format(count=history))
        self.enqueued(server, "bulk", count=jobs, chunk=1000)
        asked(self.url(server), "VACUUM ANALYZE")
        asked(self.url(server), "CHECKPOINT")
        with self.working(server, processes) as folder:
            began = float(written(folder, "first"))
            with closing(database.connect(self.url(server))) as connection:
                connection.autocommit = True
                # Otherwise each look might scan the jobs that are done, which costs time that the system would need.
                database.fetch_all(connection, "SET enable_seqscan = off")
                while database.fetch_value(connection, f"SELECT EXISTS ({self.unfinished})"):
                    time.sleep(POLL_SECONDS)
            return jobs / (time.monotonic_ns() - began) * 1e9

    def picked_up(self, server: str, jobs: int, pause: float) -> list[float]:
        """Return the milliseconds from each commit to the call of the handler in an idle worker, sorted."""
        self.fresh(server)
        with self.working(server, 1, record=jobs) as folder:
            time.sleep(3)  # until the worker is idle: not every system reports that
            finished(self.start(server, Path(folder), "paced", count=jobs, pause=pause))
            called, committed = dict(written(folder, "calls")), dict(written(folder, "committed"))
            return sorted((called[number] - committed[number]) / 1e6 for number in committed)

    @contextmanager
    def working(self, server: str, processes: int, record: int = 0) -> Iterator[str]:
        """Run workers, and yield the folder in which they report."""
        with tempfile.TemporaryDirectory() as folder:
            options = {**self.worker, "record": record}
            workers = [self.start(server, Path(folder), "worker", **options) for _ in range(processes)]
            try:
                yield folder
            finally:
                for worker in workers:
                    worker.send_signal(signal.SIGTERM)
                for worker in workers:
                    try:
                        worker.wait(10)
                    except subprocess.TimeoutExpired:
                        worker.kill()
                        worker.wait()


OURS = (sys.executable, PROGRAMS / "rowcall_program.py")
UNFINISHED_RUNS = "SELECT FROM rowcall.job_runs WHERE finished_at IS NULL"

# Each has the fastest settings that we tried, except Rowcall, which has its defaults.
PEERS = (
    Peer("rowcall", OURS, UNFINISHED_RUNS, earlier=FINISHED),
    Peer("plain-sql", OURS, UNFINISHED_RUNS, earlier=FINISHED, always={"plain": True}),
    Peer(
        "graphile-worker",
        (NODE, PROGRAMS / "graphile.mjs"),
        "SELECT FROM graphile_worker._private_jobs",
        {"concurrency": 24, "pool": 25, "queue": 2000},
        paced=(sys.executable, PROGRAMS / "graphile_enqueuer.py"),
    ),
    Peer(
        "pgqueuer",
        (python_of("pgqueuer"), PROGRAMS / "pgqueuer_program.py"),
        "SELECT FROM pgqueuer",
        {"batch": 500},
    ),
)


def finished(program: subprocess.Popen[bytes]) -> None:
    """Wait until the program has ended well."""
    if program.wait(LIMIT_SECONDS):
        raise RuntimeError(f"{program.args!r} failed")


def written(folder: str, name: str) -> Any:
    """Return what a program has written under this name, as soon as it is there."""
    until = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < until:
        found = [path for path in Path(folder).glob(f"{name}.*") if path.suffix != ".draft"]
        if found:
            return min(json.loads(path.read_text()) for path in found)
        time.sleep(STEP_SECONDS)
    raise RuntimeError(f"no program has written {name!r}")
