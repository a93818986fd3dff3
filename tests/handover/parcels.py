"""The parcels' processes: the environment of their workers, and a Celery worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.broker import Broker
from tests.support.processes import wait_until
from tests.support.shop import Shop

QUEUE = "parcels"
WAITING = f"celery {QUEUE} parcels.tasks.send"

# Child processes, and no traffic among Celery workers.
CELERY = [
    "worker",
    "--pool",
    "prefork",
    "--queues",
    QUEUE,
    "--loglevel",
    "INFO",
    "--without-gossip",
    "--without-mingle",
]


class Parcels(Shop):
    """The environment of the parcels' processes, and their broker."""

    def __init__(self, environment: dict[str, str], url: str, broker: Broker, folder: Path) -> None:
        super().__init__(environment, url)
        self.environment |= {"ROWCALL_APP": "parcels", "ROWCALL_BROKER_URL": broker.url}
        self.broker = broker
        self.doors = folder

    def celery_log(self) -> str:
        """Return what the Celery workers have printed."""
        return (self.doors / "celery.log").read_text()

    def send(self, **payload: Any) -> int:
        """Enqueue a run that is handed over."""
        [run_id] = self.ask_many("parcel_send", [self.payload(**payload)], queue=QUEUE)
        return run_id

    def payload(self, *, at_a_door: bool = False, **payload: object) -> dict[str, object]:
        """Return a payload with the folder of labels, and perhaps that of the doors."""
        return {**payload, "folder": str(self.doors), "doors": str(self.doors) if at_a_door else ""}

    def wait_for_message(self, run_id: int) -> None:
        """Return when the run's message waits in the broker and its worker has let go of it."""
        wait_until(lambda: self.row(run_id)["locked_by"] == WAITING, f"run {run_id} is handed over")

    def labels(self) -> list[str]:
        """Return the labels that were printed."""
        path = self.doors / "labels"
        return path.read_text().split() if path.exists() else []


@contextmanager
def celery_worker(parcels: Parcels, concurrency: int = 1) -> Iterator[subprocess.Popen[str]]:
    """Run a Celery worker for the block, and kill it and its children at the end."""
    command = [sys.executable, "-m", "celery", "--app", "parcels.tasks", *CELERY, "--concurrency", str(concurrency)]
    with in_a_group(command, {**os.environ, **parcels.environment}, parcels.doors) as process:
        yield process


@contextmanager
def in_a_group(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the block, with its output in the folder's celery.log; kill all its processes at the end."""
    with (folder / "celery.log").open("a") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=output, stderr=output, text=True, start_new_session=True
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
