"""Measures how long the handlers of each job type take, and how many runs end per second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rowcall.base.clock import elapsed
from rowcall_worker.attempt.in_flight_run import InFlightRun

# A job type is quick if its handler takes at most this long on average over about this many recent runs.
QUICK_SECONDS = 0.005
SAMPLES = 20

# Quick runs are claimed ahead, as many as this worker finishes in this time, so that one round trip serves many.  Slow
# runs are not, because no other worker could begin them.
AHEAD_SECONDS = 0.1
AHEAD_MOST = 2000

# Runs are counted over windows of this length, because a batch that ends all at once says nothing about the pace.
WINDOW_SECONDS = 0.05


class Room(NamedTuple):
    """How many runs may be claimed: one for each free slot, and quick ones ahead."""

    slots: int
    ahead: int


@dataclass
class HandlerTime:
    """The average handler time of one job type."""

    samples: int = 0
    seconds: float = 0.0

    def add(self, times: Sequence[float]) -> None:
        """Add runs to the moving average."""
        self.samples = min(self.samples + len(times), SAMPLES)
        latest = times[-SAMPLES:]
        self.seconds += (sum(latest) / len(latest) - self.seconds) * len(latest) / self.samples

    @property
    def is_quick(self) -> bool:
        """Whether the job type is quick and has been measured often enough."""
        return self.samples == SAMPLES and self.seconds <= QUICK_SECONDS


class Pace:
    """The measurements.  Callers must hold the lock of InFlight."""

    def __init__(self) -> None:
        self._times: dict[str, HandlerTime] = {}
        self._rate = 0.0
        self._ended = 0
        self._since = elapsed()

    def handled(self, ended: Sequence[InFlightRun]) -> None:
        """Record how long the handlers of these runs have taken."""
        times: dict[str, list[float]] = defaultdict(list)
        for run in ended:
            if run.seconds is not None:
                times[run.claimed.job_type].append(run.seconds)
        for job_type, seconds in times.items():
            self._times.setdefault(job_type, HandlerTime()).add(seconds)

    def written(self, runs: int, now: float) -> None:
        """Record that the ends of this many runs are written."""
        self._ended += runs
        if now - self._since >= WINDOW_SECONDS:
            self._rate = self._ended / (now - self._since)
            self._ended, self._since = 0, now

    def quick_types(self) -> list[str]:
        """Return the quick job types."""
        return [job_type for job_type, time in self._times.items() if time.is_quick]

    def ahead(self, threads: int) -> int:
        """How many quick runs to claim ahead, from their handler times and the last window."""
        quick = [time.seconds for time in self._times.values() if time.is_quick]
        if not quick:
            return 0
        rate, age = self._rate, elapsed() - self._since
        if age > 2 * WINDOW_SECONDS:
            # Little has ended since then, so the last window overstates the pace.
            rate = min(rate, self._ended / age)
        runs = min(rate * AHEAD_SECONDS, threads * AHEAD_SECONDS / max(*quick, 1e-6))
        return int(min(runs, AHEAD_MOST))
