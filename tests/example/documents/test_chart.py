"""Charts: round scales, and bars in proportion to their values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall_example.documents.chart import Box, Series, Words, bars, scale, short


@pytest.mark.parametrize(
    ("most", "step", "top"),
    [
        (0, 1, 1),
        (1, 1, 1),
        (4, 1, 4),
        (5, 2, 6),
        (9, 5, 10),
        (17, 5, 20),
        (100, 50, 100),
        (101, 50, 150),
        (999, 500, 1000),
    ],
)
def test_a_scale_has_round_steps_and_holds_the_highest_value(most: int, step: int, top: int) -> None:
    assert scale(most) == (step, top)


@settings(deadline=None)  # a busy machine must not fail this
@given(st.integers(0, 10**15))
def test_a_scale_never_has_more_than_four_steps(most: int) -> None:
    step, top = scale(most)
    assert top % step == 0
    assert most <= top <= 4 * step


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1000, "1k"), (1250, "1.2k"), (35_400, "35k"), (4_100_000, "4.1M")]
)
def test_a_number_beside_an_axis_is_short(value: int, text: str) -> None:
    assert short(value) == text


def test_bars_are_as_high_as_their_values_and_stay_within_the_drawing() -> None:
    drawing = bars(
        "Orders", ["a", "b"], [Series("before", "#111111", [0, 4]), Series("now", "#222222", [2, 1])], 200, 100
    )
    heights = {
        colour: [
            round(box.height, 6)
            for box in drawing.shapes
            if isinstance(box, Box) and box.colour == colour and box.radius
        ]
        for colour in ("#111111", "#222222")
    }
    [highest] = heights["#111111"]
    assert heights["#222222"] == [highest / 2, highest / 4]
    for shape in drawing.shapes:
        assert 0 <= shape.x <= 200
        assert 0 <= shape.y <= 100
    values = [shape.text for shape in drawing.shapes if isinstance(shape, Words) and shape.bold]
    assert values == ["Orders", "2", "1"]
