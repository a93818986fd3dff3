"""Charts of lines, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

COLOURS = ("#2563a8", "#c2410c", "#15803d", "#7c3aed", "#8a8a8a")
LEFT, TOP, WIDTH, HEIGHT = 70, 44, 450, 240

# Ends of an axis whose quarters are round too.
ROUND = (1, 2, 4, 8, 10)

Points = Sequence[tuple[float, float]]


class Axis(NamedTuple):
    """The ends of an axis, in powers of ten if `log`."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], log: bool) -> Axis:
        """Return an axis that has all of these values."""
        if not log:
            power = 10 ** math.floor(math.log10(max(values)))
            return cls(0.0, next(high * power for high in ROUND if high * power >= max(values)), False)
        return cls(10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values))), True)

    def share(self, value: float) -> float:
        """Return where the value is, from 0 to 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> Sequence[float]:
        """Return the values at which the axis has a mark."""
        if self.log:
            return [self.low * 10**power for power in range(round(math.log10(self.high / self.low)) + 1)]
        return [self.high * number / 4 for number in range(5)]


def lines(title: str, across: str, series: Mapping[str, Points], log: tuple[bool, bool]) -> str:
    """Return a line for each series; `log` says for x and y whether the axis is logarithmic."""
    points = [point for of in series.values() for point in of]
    xs, ys = (Axis.of(values, flag) for values, flag in zip(zip(*points, strict=True), log, strict=True))
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 340" width="720" height="340" role="img"'
        f' font-family="sans-serif" font-size="13"><title>{escape(title)}</title>'
        '<rect width="720" height="340" fill="#fff"/>'
        f'<text x="12" y="24" font-weight="bold">{escape(title)}</text>'
        f'<text x="{LEFT + WIDTH / 2}" y="328" text-anchor="middle">{escape(across)}</text>'
    )
    parts = [head]
    for mark in xs.marks():
        x = LEFT + WIDTH * xs.share(mark)
        parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{mark:,.4g}</text>')
    for mark in ys.marks():
        y = TOP + HEIGHT * (1 - ys.share(mark))
        parts.append(
            f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{said(mark)}</text>'
        )
    for number, (name, of) in enumerate(series.items()):
        places = [(LEFT + WIDTH * xs.share(x), TOP + HEIGHT * (1 - ys.share(y))) for x, y in of]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(
            f'<text x="{LEFT + WIDTH + 14}" y="{TOP + 16 + 20 * number}" fill="{colour}">{escape(name)}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def said(value: float) -> str:
    """Return a number for a mark."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.2g}"
