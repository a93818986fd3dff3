"""The heartbeat: renews the leases of all runs in flight, on its own thread and connection.

It tells handlers that their lease is lost or that an operator asked to cancel the run, writes their progress and what
they log, and shows that the worker is alive.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.logs import LogEvent, log
from rowcall.queue import Lease, LeaseRenewal, heartbeat, show_progress
from rowcall.queue.workers import Registration, alive
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.runtime.completer import named
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.in_flight import AGAIN_SECONDS, InFlight
from rowcall_worker.runtime.run_logs import written_with

# How often progress is written.
TICK_SECONDS = 0.5

# A worker that died while asleep is still notified for this many heartbeats, and for at least this many seconds,
# because the heartbeat of a busy worker may be late.
BEATS_ASLEEP = 2
LATE_SECONDS = 10.0


@dataclass
class Heartbeat:
    """The thread that renews the leases."""

    in_flight: InFlight
    link: Link
    worker: Registration
    leases: Mapping[str, float]
    interval: float
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _next: float = 0.0
    _skipped: Sequence[InFlightRun] = ()
    _again: float = 0.0

    def start(self) -> None:
        """Start; nothing is claimed before the first connection."""
        self.in_flight.heartbeat_connected(False)
        self._next = elapsed() + self.interval
        self._thread = threading.Thread(target=self.in_flight.guarded(self._run), name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self, patience: float) -> None:
        """Stop, after everything else: a worker that is still finishing must keep its leases."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(patience)

    def _run(self) -> None:
        self.tick()
        while not self._stopped.wait(min(TICK_SECONDS, self.interval)):
            self.tick()
        self.link.close()

    def tick(self) -> None:
        """Renew the leases when it is time, and write new progress."""
        # A run that is being handed over keeps the lease of its claim, which its consumer may take over at any moment.
        runs = [run for run in list(self.in_flight.runs.values()) if run.claimed.job_type in self.leases]
        now = elapsed()
        try:
            connection = self.link.get()
            self.in_flight.heartbeat_connected(True)
            beats = now >= self._next
            if beats:
                self._beat(connection, runs)
                self._next = now + self.interval
                self._show_alive(connection)
                self.link.works()
            elif self._skipped and now >= self._again:
                self._beat(connection, self._skipped)
            self._write_progress(runs)
            if beats:
                self.in_flight.counter.write(connection, self.worker.id)
        except CONNECTION_ERRORS as error:
            pause = self.link.lost(error)
            self.in_flight.heartbeat_connected(self.link.connected)
            self._stopped.wait(pause)
        else:
            self.link.responds()

    def _show_alive(self, connection: PgConnection) -> None:
        if not alive(connection, self.worker, notified(self.interval)):
            self.in_flight.wake_ups.hear()  # it may have missed a notification

    def _beat(self, connection: PgConnection, runs: Sequence[InFlightRun]) -> None:
        """Renew leases in one statement.  One with a locked row is retried soon; one missing in the result is lost."""
        asked_at = elapsed()
        kept = self._renewed(connection, runs)
        skipped = []
        for run in runs:
            renewal = kept.get(run.lease)
            if renewal is None:
                if run.lease in self.in_flight.runs and not run.settled:
                    lose(run)
                continue
            run.cancel_requested = renewal.cancel_requested
            if renewal.renewed:
                run.renewed(asked_at + self.leases[run.claimed.job_type])
            else:
                skipped.append(run)
        self._skipped, self._again = skipped, elapsed() + AGAIN_SECONDS

    def _renewed(self, connection: PgConnection, runs: Sequence[InFlightRun]) -> dict[Lease, LeaseRenewal]:
        """Renew leases; if their handlers have logged, write that in the same transaction."""
        seconds = {run.lease: self.leases[run.claimed.job_type] for run in runs}

        def renew() -> tuple[dict[Lease, LeaseRenewal], set[Lease]]:
            kept = heartbeat(connection, seconds)
            return kept, {lease for lease, renewal in kept.items() if renewal.renewed}

        return written_with(connection, runs, renew)

    def _shown(self, connection: PgConnection, new: Mapping[InFlightRun, str]) -> set[Lease]:
        """Write progress, and with it what these handlers have logged."""

        def show() -> tuple[set[Lease], set[Lease]]:
            written = show_progress(connection, {run.lease: progress for run, progress in new.items()})
            return written, written

        return written_with(connection, list(new), show)

    def _write_progress(self, runs: Sequence[InFlightRun]) -> None:
        """Write new progress; what could not be written is kept for the next tick."""
        new = {run: progress for run in runs if (progress := run.progress) is not None and not run.lost}
        if not new:
            return
        written = self._shown(self.link.get(), new)
        for run, progress in new.items():
            if run.lease in written and run.progress is progress:
                run.progress = None


def notified(interval: float) -> float:
    """How many seconds after its last heartbeat a sleeping worker is still notified."""
    return max(BEATS_ASLEEP * interval, LATE_SECONDS)


def lose(run: InFlightRun) -> None:
    """Mark the lease as lost: tell its handler, and log it once."""
    if not run.lost:
        run.lost = True
        log().warning(LogEvent.LEASE_LOST, **named(run))
