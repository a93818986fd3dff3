"""Histograms of times, with few buckets whose bounds never change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

# The upper bounds of the buckets in seconds; one more bucket has what is longer.  Stored rows have these buckets, so a
# change of a bound needs a migration.
BOUNDS = (
    *(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    *(60.0, 120.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0),
)
BUCKETS = len(BOUNDS) + 1


def bucket_of(seconds: float) -> int:
    """Return the position of the bucket of this time."""
    return bisect_left(BOUNDS, seconds)


def add_to(histogram: list[int], buckets: Iterable[int]) -> None:
    """Count a time in each of these buckets."""
    for bucket in buckets:
        histogram[bucket] += 1


def quantile(buckets: Sequence[int], share: float) -> float | None:
    """Return the time within which this share of the times lies, or None if there are none.

    It is interpolated within its bucket, as if the times there were spread evenly; times beyond the last bound count as
    that bound.
    """
    rank = share * sum(buckets)
    if rank == 0:
        return None
    below = 0
    for lower, upper, count in zip((0.0, *BOUNDS), BOUNDS, buckets, strict=False):
        if count and below + count >= rank:
            return round(lower + (upper - lower) * (rank - below) / count, 4)
        below += count
    return BOUNDS[-1]
