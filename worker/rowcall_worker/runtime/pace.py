"""The pace of a worker: how long handlers take, by job type, and how many runs end in a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rowcall.base.clock import elapsed

# A type is quick while its handler takes so many seconds on average, over about so many of its last runs.
QUICK_SECONDS = 0.005
SAMPLES = 20

# Runs that take a millisecond are claimed ahead, so that a round trip serves many: what is worked in so many seconds.
# Those that take longer are not, because what one process has claimed no other can begin.
AHEAD_SECONDS = 0.1
AHEAD_MOST = 2000

# Runs are counted over windows of this length, as a batch that ends at once says nothing of the pace.
WINDOW_SECONDS = 0.05


class Room(NamedTuple):
    """How many runs may be claimed: one for each free slot, and so many quick ones ahead."""

    slots: int
    ahead: int


@dataclass
class HandlerTime:
    """The average of one job type."""

    samples: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """One more run; the older ones count for less and less."""
        self.samples = min(self.samples + 1, SAMPLES)
        self.seconds += (seconds - self.seconds) / self.samples

    @property
    def is_quick(self) -> bool:
        """Known well enough, and quick."""
        return self.samples == SAMPLES and self.seconds <= QUICK_SECONDS


class Pace:
    """What is measured; whoever asks holds the lock of the runs in flight."""

    def __init__(self) -> None:
        self._times: dict[str, HandlerTime] = {}
        self._rate = 0.0
        self._ended = 0
        self._since = elapsed()

    def handled(self, job_type: str, seconds: float) -> None:
        """A handler has ended."""
        self._times.setdefault(job_type, HandlerTime()).add(seconds)

    def written(self, runs: int, now: float) -> None:
        """The ends of so many runs are written."""
        self._ended += runs
        if now - self._since >= WINDOW_SECONDS:
            self._rate = self._ended / (now - self._since)
            self._ended, self._since = 0, now

    def quick_types(self) -> list[str]:
        """The job types whose handlers take a few milliseconds."""
        return [job_type for job_type, time in self._times.items() if time.is_quick]

    def ahead(self, threads: int) -> int:
        """How many quick runs these threads work in a moment, by their handlers' time and by the last window."""
        quick = [time.seconds for time in self._times.values() if time.is_quick]
        if not quick:
            return 0
        rate, age = self._rate, elapsed() - self._since
        if age > 2 * WINDOW_SECONDS:
            # Little has ended lately: the last window says too much.
            rate = min(rate, self._ended / age)
        runs = min(rate * AHEAD_SECONDS, threads * AHEAD_SECONDS / max(*quick, 1e-6))
        return int(min(runs, AHEAD_MOST))
