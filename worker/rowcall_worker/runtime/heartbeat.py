"""The heartbeat: keeps the leases of all runs in hand, on a thread and connection of its own.

It also carries what handlers say of their progress, tells them when an operator wants them cancelled, ends those that
are beyond their time limit, and is the sign of life of the worker itself.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.errors import TimeLimitExceeded
from rowcall.base.logs import LogEvent, log
from rowcall.queue import LeaseRenewal, heartbeat, note_progress
from rowcall.queue.workers import alive
from rowcall_worker.attempt.result import error_of
from rowcall_worker.runtime.completer import named
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.executor import Executor
from rowcall_worker.runtime.in_flight import InFlight, InFlightRun, Outcome

# How often limits are looked at and progress is written.
TICK_SECONDS = 0.5


@dataclass
class Heartbeat:
    """The thread that keeps the leases."""

    in_flight: InFlight
    executor: Executor
    link: Link
    worker: str
    leases: Mapping[str, float]
    limits: Mapping[str, float]
    interval: float
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _next: float = 0.0

    def start(self) -> None:
        """Begin."""
        self._next = elapsed() + self.interval
        self._thread = threading.Thread(target=self.in_flight.guarded(self._run), name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, last of all: a worker that is still finishing must keep its leases."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(min(TICK_SECONDS, self.interval)):
            self.tick()
        self.link.close()

    def tick(self) -> None:
        """One look at everything in hand."""
        runs = list(self.in_flight.held.values())
        now = elapsed()
        self._end_overdue(runs, now)
        try:
            self._tell_progress(runs)
            if now >= self._next:
                self._beat(self.link.get(), runs)
                self._next = now + self.interval
        except CONNECTION_ERRORS as error:
            self._stopped.wait(self.link.lost(error))
        else:
            self.link.works()

    def _beat(self, connection: PgConnection, runs: list[InFlightRun]) -> None:
        """Renew all leases in one statement; what it does not answer for is lost."""
        asked_at = elapsed()
        held = [LeaseRenewal(*run.key, self.leases[run.claimed.job_type]) for run in runs]
        kept = heartbeat(connection, self.worker, held) if held else {}
        alive(connection, self.worker)
        for run in runs:
            if run.key in kept:
                run.deadline = asked_at + self.leases[run.claimed.job_type]
                run.cancel_requested = kept[run.key]
            elif run.key in self.in_flight.held and not run.lost and not run.settled:
                run.lost = True
                log().warning(LogEvent.LEASE_LOST, **named(run))

    def _tell_progress(self, runs: list[InFlightRun]) -> None:
        for run in runs:
            told, run.progress = run.progress, None
            if told is not None:
                note_progress(self.link.get(), self.worker, run.key, told)

    def _end_overdue(self, runs: list[InFlightRun], now: float) -> None:
        """Fail what is beyond its time limit: its thread may be stuck for good, so another takes its place."""
        for run in runs:
            limit = self.limits.get(run.claimed.job_type)
            if limit is None or run.begun_at is None or now < run.begun_at + limit or run.settled:
                continue
            run.lost = True
            if self.in_flight.settle(Outcome(run, verdict=error_of(TimeLimitExceeded(run.claimed.job_type, limit)))):
                self.executor.add_thread()
