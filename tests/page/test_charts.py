"""The labels of charts are short and round, whatever was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rowcall.queue.series.read import Series
from rowcall_api.page import charts


def chart(*waits: float) -> charts.Chart:
    """Draw points with these waiting times as both quantiles."""
    until = datetime.now(UTC)
    points = [{"waiting": {"p50": wait, "p95": wait}} for wait in waits]
    return charts.times(Series(until - timedelta(hours=1), until, points, []), "waiting", "How long runs waited")


@pytest.mark.parametrize(
    ("waits", "labels"),
    [
        ((), ["1 ms", "10 ms", "100 ms", "1 s"]),
        ((0.0,), ["1 ms", "10 ms"]),
        ((0.02, 0.5), ["10 ms", "100 ms", "1 s"]),
        ((45.0, 700.0), ["10 s", "1 min", "10 min", "1 h"]),
        ((7000.0, 90000.0), ["1 h", "1 d", "10 d"]),
        ((3e8,), ["10 d", "100 d"]),
    ],
)
def test_an_axis_of_durations_has_round_labels(waits: tuple[float, ...], labels: list[str]) -> None:
    assert [mark.text for mark in chart(*waits).up] == labels


@pytest.mark.parametrize(
    ("ended", "labels"), [(1, "0 1"), (3, "0 2 4"), (5, "0 3 6"), (11, "0 10 20"), (250, "0 200 400")]
)
def test_an_axis_of_counts_has_a_middle_that_is_in_the_middle(ended: int, labels: str) -> None:
    until = datetime.now(UTC)
    point = dict.fromkeys((*charts.GOOD, *charts.BAD), 0) | {charts.GOOD[0]: ended}
    drawn = charts.throughput(Series(until - timedelta(hours=1), until, [point], []))
    assert [mark.text for mark in drawn.up] == labels.split()
    bottom, *between, top = (mark.at for mark in drawn.up)
    assert between in ([], [(bottom + top) / 2])


def test_a_longer_time_is_drawn_higher_and_within_the_chart() -> None:
    drawn = chart(0.004, 45.0, 7000.0, 1e6)
    heights = [place[1] for place in drawn.lines[0]]
    assert heights == sorted(heights, reverse=True)
    assert drawn.top <= heights[-1] < heights[0] <= drawn.bottom
