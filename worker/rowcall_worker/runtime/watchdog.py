"""The watchdog: enforces time limits, lease deadlines and statement timeouts, on a thread that never blocks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rowcall.base.clock import elapsed
from rowcall.base.errors import TimeLimitExceeded, TooManyStuck
from rowcall.base.watched import Answers
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.heartbeat import lose
from rowcall_worker.runtime.in_flight import InFlight

# How often limits are checked.
TICK_SECONDS = 0.5


class Threads(Protocol):
    """The threads in which handlers run."""

    def replace_thread(self, run: InFlightRun) -> int:
        """Replace the thread of a run that exceeds its time limit; return how many threads are stuck."""


@dataclass
class Watchdog:
    """The thread that enforces the time limits (job type -> seconds) of runs in the worker's process."""

    in_flight: InFlight
    executor: Threads
    limits: Mapping[str, float]
    answers: Answers = field(default_factory=Answers)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Start, as a daemon, because it has nothing to finish."""
        threading.Thread(target=self.in_flight.guarded(self._run), name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(TICK_SECONDS):
            self.tick()

    def tick(self) -> None:
        """End waits for the database that last too long, and check the deadline and time limit of every run."""
        self.answers.end_overdue()
        self._keep_deadlines()
        self._keep_limits()

    def _keep_deadlines(self) -> None:
        """Mark runs as lost if their leases were not renewed in time: another worker may have them."""
        now = elapsed()
        for run in list(self.in_flight.runs.values()):
            if now > run.deadline and not run.settled:
                lose(run)

    def _keep_limits(self) -> None:
        """Fail attempts beyond their time limit, and replace their threads, which may be stuck for good."""
        now = elapsed()
        for run in list(self.in_flight.runs.values()):
            job_type = run.claimed.job_type
            limit = self.limits.get(job_type)
            if limit is None or run.begun_at is None or now < run.begun_at + limit or run.settled:
                continue
            run.lost = True
            if self.in_flight.settle(run, AttemptResult.of_error(TimeLimitExceeded(job_type, limit))):
                stuck = self.executor.replace_thread(run)
                if stuck >= self.in_flight.threads:
                    self.in_flight.fails(TooManyStuck(stuck))
