"""Charts of the series as coordinates; the template chart.html draws them as SVG."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rowcall.base.database import Row
from rowcall.queue.series.read import Series

# About one unit per pixel when three charts are side by side, so that the text is readable.
WIDTH, HEIGHT = 420, 160
LEFT, RIGHT, TOP, BOTTOM = 50, 8, 12, 24

# The durations that can be labelled beside a chart, in seconds: about a tenth of each other, and round in their unit.
DURATIONS = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0, 864000.0, 8640000.0)

# The number of time labels below a chart.
TICKS = 4

# The outcomes of attempts that are drawn, in one colour per group; released and snoozed attempts are left out, because
# they neither succeeded nor failed.
GOOD, BAD = ("succeeded",), ("failed", "dead")


class Bar(NamedTuple):
    """A rectangle of a bar chart."""

    x: float
    y: float
    width: float
    height: float
    kind: str


class Mark(NamedTuple):
    """A label at a position on an axis, or a deploy."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """What the template draws: a title that says everything in words, bars or lines, and the marks of both axes."""

    title: str
    bars: Sequence[Bar]
    lines: Sequence[Sequence[tuple[float, float]]]
    up: Sequence[Mark]
    along: Sequence[Mark]
    deploys: Sequence[Mark]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    bottom: int = HEIGHT - BOTTOM
    right: int = WIDTH - RIGHT
    top: int = TOP


def throughput(series: Series) -> Chart:
    """Draw how many attempts ended well and badly in each step."""
    totals = [(_sum(point, GOOD), _sum(point, BAD)) for point in series.points]
    most = max((good + bad for good, bad in totals), default=0)
    top = _round_up(most)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(totals))
    bars = []
    for place, (good, bad) in enumerate(totals):
        x, base = LEFT + place * step, float(HEIGHT - BOTTOM)
        for number, kind in ((good, "good"), (bad, "bad")):
            height = number / top * (HEIGHT - TOP - BOTTOM)
            if number:
                base -= height
                bars.append(Bar(round(x, 1), round(base, 1), round(max(step - 1, 0.8), 1), round(height, 1), kind))
    succeeded, failed = sum(good for good, _ in totals), sum(bad for _, bad in totals)
    title = f"{succeeded:,} attempts succeeded and {failed:,} failed; at most {most:,} in one step"
    return Chart(title, bars, (), _up(top), *_below(series))


def times(series: Series, name: str, words: str) -> Chart:
    """Draw the median and the 95th percentile of a duration, on a logarithmic scale."""
    found = [point[name][quantile] for point in series.points for quantile in ("p50", "p95")]
    known = [value for value in found if value is not None]
    steps = _steps(known)
    lines = [_line(series.points, name, quantile, steps) for quantile in ("p50", "p95")]
    worst = max(known, default=None)
    title = f"{words}: " + (
        "nothing was measured" if worst is None else f"the 95th percentile was at most {_short(worst)}"
    )
    up = [Mark(_height(_share(step, steps)), _short(step)) for step in steps]
    return Chart(title, (), lines, up, *_below(series))


def _line(points: Sequence[Row], name: str, quantile: str, steps: Sequence[float]) -> list[tuple[float, float]]:
    step = (WIDTH - LEFT - RIGHT) / max(1, len(points))
    return [
        (round(LEFT + (place + 0.5) * step, 1), _height(_share(max(value, steps[0]), steps)))
        for place, point in enumerate(points)
        if (value := point[name][quantile]) is not None
    ]


def _sum(point: Row, ends: Sequence[str]) -> int:
    return sum(point[end] for end in ends)


def _height(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _round_up(most: int) -> int:
    """Return the next of 1, 2, 4, 6, 8, 10, 20, 40, ..., so that an axis and its middle have round numbers."""
    power: int = 10 ** max(0, len(str(most)) - 1)
    return next(factor * power for factor in (1, 2, 4, 6, 8, 10) if factor * power >= most)


def _steps(values: Sequence[float]) -> Sequence[float]:
    """Return the labelled durations that enclose the values."""
    if not values:
        return DURATIONS[:4]
    last = max(1, min(bisect_left(DURATIONS, max(values)), len(DURATIONS) - 1))
    first = min(max(0, bisect_right(DURATIONS, min(values)) - 1), last - 1)
    return DURATIONS[first : last + 1]


def _share(seconds: float, steps: Sequence[float]) -> float:
    """Return where on the axis, from 0 to 1, a duration is."""
    return math.log(seconds / steps[0]) / math.log(steps[-1] / steps[0])


def _up(top: int) -> list[Mark]:
    return [Mark(_height(share), f"{top * share:,.0f}") for share in (0.0, 0.5, 1.0) if top > 1 or share != 0.5]


def _below(series: Series) -> tuple[list[Mark], list[Mark]]:
    """Return the time labels below the chart, and the deploys."""
    length = (series.until - series.since).total_seconds()
    form = "%H:%M" if length <= 86400 else "%d %b"

    def place(at: datetime) -> float:
        return round(LEFT + (at - series.since).total_seconds() / length * (WIDTH - LEFT - RIGHT), 1)

    along = [
        Mark(place(moment), moment.strftime(form))
        for number in range(TICKS)
        for moment in (series.since + (series.until - series.since) * number / TICKS,)
    ]
    return along, [Mark(place(deploy["at"]), deploy["version"]) for deploy in series.deploys]


def _short(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms"
