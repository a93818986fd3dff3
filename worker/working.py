"""The two ways to work: `run` stays, `once` drains what is due and goes."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass

from shared import database
from shared.clock import elapsed
from shared.job_types import catalogue
from shared.logs import LogEvent, log
from shared.schema import check_revision
from shared.settings import Settings
from shared.status import Status
from worker.executor import Executor
from worker.handlers import load_handlers
from worker.pump import Pump
from worker.shutdown import Shutdown

# How long a stopping worker waits for one outcome before it looks at its grace again.
DRAIN_STEP_SECONDS = 0.5

RELEASED = "the worker was stopped before the run was finished"


@dataclass(frozen=True)
class Report:
    """What a worker did, for the line at its end."""

    claimed: int
    succeeded: int
    failed: int
    dead: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"claimed {self.claimed}, succeeded {self.succeeded}, failed {self.failed}, dead {self.dead}"
            f" in {self.seconds:.1f} seconds"
        )


def work(
    settings: Settings,
    url: str,
    *,
    once: bool,
    concurrency: int | None = None,
    queues: list[str] | None = None,
    limit: int | None = None,
    max_seconds: float | None = None,
) -> Report:
    """Work until asked to stop; with `once`, until nothing is due, or a bound is reached."""
    types = catalogue()
    with database.transaction(url) as connection:
        check_revision(connection)
    executor = Executor(load_handlers(types, settings.app), concurrency or settings.concurrency)
    leases = {name: kind.lease or settings.lease for name, kind in types.items()}
    pump = Pump(url, _worker_id(), types, leases, executor, queues)
    shutdown = Shutdown(executor.interrupt)
    started = elapsed()
    log().info(LogEvent.WORKER_STARTED, worker=pump.worker, concurrency=executor.threads, queues=queues or "all")
    until = float("inf") if max_seconds is None else started + max_seconds
    wait = 0.0
    while not shutdown.asked and elapsed() < until:
        busy = pump.step(wait, None if limit is None else limit - pump.claimed)
        if once and pump.idle:
            break
        # With runs in hand or nothing due, the next step may wait for an outcome; else there may be more at once.
        wait = settings.poll if executor.held or not busy else 0.0
    _drain(pump, settings.grace)
    report = Report(
        pump.claimed,
        pump.done[Status.SUCCEEDED],
        pump.done[Status.FAILED],
        pump.done[Status.DEAD],
        elapsed() - started,
    )
    log().info(LogEvent.WORKER_STOPPED, worker=pump.worker, **vars(report))
    return report


def _drain(pump: Pump, grace: float) -> None:
    """Claim no more; let running handlers end within the grace; give back the rest."""
    executor = pump.executor
    executor.close()
    if not pump.idle:
        log().info(LogEvent.WORKER_STOPPING, worker=pump.worker, running=len(executor.held), grace=grace)
        pump.release(executor.withdraw(), RELEASED)
    until = elapsed() + grace
    while not pump.idle and elapsed() < until:
        pump.step(min(DRAIN_STEP_SECONDS, grace), limit=0)
    pump.release(list(executor.held.values()), RELEASED)
    pump.close()


def _worker_id() -> str:
    """Who holds a lease: readable for an operator, and never the same twice."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
