"""Histograms: every time has one bucket, and a percentile lies within the bucket that has it."""

from __future__ import annotations

import pytest

from rowcall.queue.series.histogram import BOUNDS, BUCKETS, bucket_of, quantile


def filled(*seconds: float) -> list[int]:
    buckets = [0] * BUCKETS
    for time in seconds:
        buckets[bucket_of(time)] += 1
    return buckets


def test_the_bounds_grow() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert BUCKETS == len(BOUNDS) + 1 == 21


@pytest.mark.parametrize(("seconds", "bucket"), [(-1, 0), (0, 0), (0.002, 0), (0.0021, 1), (86400, 19), (1e9, 20)])
def test_a_bucket_includes_its_upper_bound(seconds: float, bucket: int) -> None:
    assert bucket_of(seconds) == bucket


def test_without_times_there_is_no_percentile() -> None:
    assert quantile([0] * BUCKETS, 0.5) is None
    assert quantile((), 0.5) is None


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 7.5), (0.95, 9.75), (0.99, 9.95), (1, 10)])
def test_a_percentile_is_interpolated_within_its_bucket(share: float, seconds: float) -> None:
    assert quantile(filled(*[6.0] * 100), share) == seconds


def test_a_percentile_is_in_the_bucket_that_has_it() -> None:
    buckets = filled(*[0.001] * 94, *[20.0] * 5, 2000.0)
    assert quantile(buckets, 0.5) == pytest.approx(0.001, abs=0.0002)
    assert 10 < (quantile(buckets, 0.95) or 0) < 30
    assert quantile(buckets, 0.99) == 30
    assert 900 < (quantile(buckets, 0.995) or 0) < 3600


def test_times_beyond_the_last_bound_count_as_that_bound() -> None:
    assert quantile(filled(1e9), 0.5) == BOUNDS[-1]
