"""The heartbeat: keeps the leases of all runs in flight, on a thread and connection of its own.

It tells handlers when their lease is lost or an operator wants them cancelled, carries what they say of their progress,
and is the sign of life of the worker itself.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.logs import LogEvent, log
from rowcall.queue import heartbeat, note_progress
from rowcall.queue.workers import alive
from rowcall_worker.runtime.completer import named
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.in_flight import InFlight, InFlightRun

# How often progress is written.
TICK_SECONDS = 0.5


@dataclass
class Heartbeat:
    """The thread that keeps the leases."""

    in_flight: InFlight
    link: Link
    worker: str
    leases: Mapping[str, float]
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
        """Write the progress there is, and renew the leases when it is time."""
        runs = list(self.in_flight.runs.values())
        now = elapsed()
        try:
            self._write_progress(runs)
            if now >= self._next:
                self._beat(self.link.get(), runs)
                self._next = now + self.interval
        except CONNECTION_ERRORS as error:
            self._stopped.wait(self.link.lost(error))
        else:
            self.link.works()

    def _beat(self, connection: PgConnection, runs: list[InFlightRun]) -> None:
        """Renew all leases in one statement; those that it does not answer for are lost."""
        asked_at = elapsed()
        kept = heartbeat(connection, {run.lease: self.leases[run.claimed.job_type] for run in runs})
        alive(connection, self.worker)
        for run in runs:
            if run.lease in kept:
                run.deadline = asked_at + self.leases[run.claimed.job_type]
                run.cancel_requested = kept[run.lease]
            elif run.lease in self.in_flight.runs and not run.lost and not run.settled:
                run.lost = True
                log().warning(LogEvent.LEASE_LOST, **named(run))

    def _write_progress(self, runs: list[InFlightRun]) -> None:
        for run in runs:
            progress, run.progress = run.progress, None
            if progress is not None:
                note_progress(self.link.get(), run.lease, progress)
