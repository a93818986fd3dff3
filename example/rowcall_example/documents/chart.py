"""A bar chart as plain shapes, laid out once and drawn twice: as a PNG for an email, and as lines of a PDF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rowcall_example.documents.colours import INK, LINE, MUTED

# All measures are points: 1/72 inch on paper, one CSS pixel in an email.
TITLE_SIZE = 11.5
LABEL_SIZE = 9.0
LEGEND_SIZE = 8.5
LEGEND_Y = 28.0
LEGEND_WIDTH = 76.0
# Between the legend and the top of the plot: room for the value of a bar that reaches it.
ABOVE = 16.0
AXIS_WIDTH = 28.0
LABELS_HEIGHT = 20.0
MOST_STEPS = 4


@dataclass(frozen=True)
class Box:
    """A filled rectangle; with a radius, its upper corners are round."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    radius: float = 0


@dataclass(frozen=True)
class Words:
    """A line of text with its baseline at y, and its start, end or middle at x."""

    x: float
    y: float
    text: str
    size: float = LABEL_SIZE
    colour: str = MUTED
    bold: bool = False
    at: Literal["start", "middle", "end"] = "middle"


Shape: TypeAlias = Box | Words


@dataclass(frozen=True)
class Drawing:
    """Shapes, in the order in which they are drawn, on a white background of this size."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Series:
    """The values of the bars of one colour: a whole number, zero or more, for each label."""

    name: str
    colour: str
    values: Sequence[int]


def bars(title: str, labels: Sequence[str], series: Sequence[Series], width: float, height: float) -> Drawing:
    """Draw groups of bars side by side; the last series is in front and has its values above its bars."""
    step, top = scale(max(max(each.values) for each in series))
    upper = (LEGEND_Y if len(series) > 1 else TITLE_SIZE) + ABOVE
    plot = Box(AXIS_WIDTH, upper, width - AXIS_WIDTH, height - upper - LABELS_HEIGHT, "")
    shapes = [
        Words(0, TITLE_SIZE, title, TITLE_SIZE, INK, bold=True, at="start"),
        *(_legend(series) if len(series) > 1 else ()),
        *_axis(plot, step, top),
        *_groups(plot, labels, series, top),
    ]
    return Drawing(width, height, tuple(shapes))


def scale(most: int) -> tuple[int, int]:
    """Return a round step between grid lines, and the axis's upper end: at most MOST_STEPS steps reach this value."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            step = digit * power
            if step * MOST_STEPS >= most:
                return step, max(step, -(-most // step) * step)
        power *= 10


def _axis(plot: Box, step: int, top: int) -> Iterator[Shape]:
    for value in range(0, top + 1, step):
        y = plot.y + plot.height * (1 - value / top)
        yield Box(plot.x, y - 0.375, plot.width, 0.75, LINE)
        yield Words(plot.x - 7, y + LABEL_SIZE * 0.36, short(value), at="end")


def _groups(plot: Box, labels: Sequence[str], series: Sequence[Series], top: int) -> Iterator[Shape]:
    slot = plot.width / len(labels)
    bar = min(slot * 0.72 / len(series), 26.0)
    label_size = _size_for(labels, slot)
    value_size = _size_for([short(value) for value in series[-1].values], slot)
    for place, label in enumerate(labels):
        middle = plot.x + slot * (place + 0.5)
        yield Words(middle, plot.y + plot.height + 14, label, label_size)
        for number, each in enumerate(series):
            value = each.values[place]
            height = plot.height * value / top
            x, y = middle + bar * (number - len(series) / 2), plot.y + plot.height - height
            if value:
                yield Box(x + 0.75, y, bar - 1.5, height, each.colour, min(2.5, height))
            if value and number == len(series) - 1:
                yield Words(x + bar / 2, y - 3.5, short(value), value_size, INK, bold=True)


def _size_for(texts: Sequence[str], slot: float) -> float:
    """Return a size at which the longest text fits; a character's width is about 0.6 of it, and texts need a gap."""
    return min(LABEL_SIZE, slot / (0.68 * max(map(len, texts))))


def _legend(series: Sequence[Series]) -> Iterator[Shape]:
    """Yield the legend under the title, in the order of the bars."""
    for number, each in enumerate(series):
        x = LEGEND_WIDTH * number
        yield Box(x, LEGEND_Y - 7.5, 8, 8, each.colour)
        yield Words(x + 12, LEGEND_Y, each.name, LEGEND_SIZE, at="start")


def short(value: int) -> str:
    """Return a number that fits beside an axis: 950, 1.2k, 35k, 4.1M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return (
                f"{value / size:.1f}".removesuffix(".0") + letter if value < 10 * size else f"{value // size}{letter}"
            )
    return str(value)
