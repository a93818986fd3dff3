"""Backoff: how long until the next attempt."""

from __future__ import annotations

import pytest

from rowcall.job_types.backoff import Backoff, exponential, fixed, quadratic


@pytest.mark.parametrize(
    ("rule", "delays"),
    [
        (fixed(7), [7, 7, 7, 7]),
        (quadratic(base=2, cap=20), [2, 8, 18, 20]),
        (exponential(base=5, cap=30), [5, 10, 20, 30]),
    ],
)
def test_a_rule_gives_its_delays_up_to_its_cap(rule: Backoff, delays: list[float]) -> None:
    assert [rule.delay(attempt, chance=lambda: 1.0) for attempt in (1, 2, 3, 4)] == delays


def test_jitter_is_full_and_can_be_left_out() -> None:
    assert fixed(10).delay(1, chance=lambda: 0.25) == 2.5
    assert fixed(10, jitter=False).delay(1, chance=lambda: 0.25) == 10


@pytest.mark.parametrize("attempts", [1000, 2**31])
def test_no_number_of_attempts_overflows(attempts: int) -> None:
    for rule in (quadratic(), exponential()):
        assert rule.delay(attempts, chance=lambda: 1.0) == 3600


@pytest.mark.parametrize(("base", "cap"), [(-1, 10), (10, 5), (1, float("inf")), (float("nan"), 10)])
def test_a_senseless_rule_is_refused(base: float, cap: float) -> None:
    with pytest.raises(ValueError, match="base .* and cap .* must be seconds"):
        quadratic(base, cap)
