"""The age of a standby's answers follows from what the leader had written, and when it was asked."""

from __future__ import annotations

from math import inf

from rowcall.base.clock import elapsed
from rowcall_api.standby.positions import MOST_SECONDS, Positions


def positions(*asked: tuple[float, int]) -> Positions:
    """Return positions that the leader had, each so many seconds ago."""
    made, now = Positions(), elapsed()
    for seconds_ago, position in asked:
        made.note(now - seconds_ago, position)
    return made


def about(seconds: float) -> float:
    """Round down, because a little time passes in a test."""
    return seconds // 1


def test_an_answer_is_as_old_as_the_last_position_that_the_standby_has_replayed() -> None:
    lagging = positions((6, 100), (4, 200), (2, 300))
    assert [about(lagging.age_of(replayed)) for replayed in (100, 199, 200, 299, 300, 999)] == [6, 6, 4, 4, 2, 2]


def test_an_answer_does_not_grow_old_while_the_leader_writes_nothing() -> None:
    assert about(positions((6, 100), (4, 100), (2, 100)).age_of(100)) == 2


def test_nothing_is_known_about_a_standby_that_is_behind_all_positions() -> None:
    assert positions((2, 300)).age_of(299) == inf
    assert Positions().age_of(300) == inf


def test_after_a_failover_positions_may_be_lower_than_before() -> None:
    # The old leader had written up to 300, and the new one began at 200.
    assert about(positions((6, 300), (4, 210), (2, 320)).age_of(310)) == 4


def test_a_position_is_forgotten_when_an_answer_that_old_would_not_be_given() -> None:
    kept = positions((MOST_SECONDS + 3, 100), (2, 300))
    assert kept.age_of(299) == inf
