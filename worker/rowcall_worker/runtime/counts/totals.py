"""Totals of the attempts of this process since its start, for /metrics."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from rowcall.queue.series.histogram import BUCKETS, add_to
from rowcall.queue.series.record import End


@dataclass
class Histogram:
    """How many times fell into each bucket, and their sum in seconds."""

    buckets: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    seconds: float = 0.0

    def add(self, buckets: Sequence[int], times: Sequence[float]) -> None:
        """Count times, which fall into these buckets."""
        add_to(self.buckets, buckets)
        self.seconds += sum(times)


@dataclass
class TypeTotals:
    """The totals of one job type."""

    ends: dict[End, int] = field(default_factory=lambda: dict.fromkeys(End, 0))
    waiting: Histogram = field(default_factory=Histogram)
    running: Histogram = field(default_factory=Histogram)


class Totals:
    """The totals by job type; only types that the process knows, so they are few.  RunCounter holds the lock."""

    def __init__(self) -> None:
        self._types: dict[str, TypeTotals] = {}

    def of(self, job_type: str) -> TypeTotals:
        """Return the totals of this type, to add to."""
        totals = self._types.get(job_type)
        if totals is None:
            totals = self._types[job_type] = TypeTotals()
        return totals

    def copy(self) -> dict[str, TypeTotals]:
        """Return a copy of all totals, by job type."""
        return {name: deepcopy(one) for name, one in sorted(self._types.items())}
