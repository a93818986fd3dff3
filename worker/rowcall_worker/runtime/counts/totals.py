"""Totals of the attempts of this process since its start, for /metrics."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from rowcall.queue.series.histogram import BUCKETS, bucket_of
from rowcall.queue.series.record import End


@dataclass
class Histogram:
    """How many times fell into each bucket, and their sum in seconds."""

    buckets: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.buckets[bucket_of(seconds)] += 1
        self.seconds += seconds


@dataclass
class TypeTotals:
    """The totals of one job type."""

    ends: Counter[End] = field(default_factory=Counter)
    waiting: Histogram = field(default_factory=Histogram)
    running: Histogram = field(default_factory=Histogram)


class Totals:
    """The totals by job type, each of which this process knows, so their number is bounded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._types: dict[str, TypeTotals] = {}

    def begun(self, job_type: str, waited: float) -> None:
        """Count an attempt that begins."""
        with self._lock:
            self._of(job_type).waiting.add(waited)

    def ended(self, job_type: str, end: End, seconds: float | None) -> None:
        """Count an attempt whose end is committed; it has no seconds if no handler had begun."""
        with self._lock:
            totals = self._of(job_type)
            totals.ends[end] += 1
            if seconds is not None:
                totals.running.add(seconds)

    def read(self) -> dict[str, TypeTotals]:
        """Return a copy of all totals, by job type."""
        with self._lock:
            return {
                name: TypeTotals(
                    Counter(one.ends),
                    Histogram(list(one.waiting.buckets), one.waiting.seconds),
                    Histogram(list(one.running.buckets), one.running.seconds),
                )
                for name, one in sorted(self._types.items())
            }

    def _of(self, job_type: str) -> TypeTotals:
        return self._types.setdefault(job_type, TypeTotals())
