"""What a worker remembers of lanes: whose turn it is, and from which position it claims."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from rowcall.queue import Claimed, ClaimResult, Swept
from rowcall.queue.claims.lanes import BEGINNING, Lane, Position
from rowcall.queue.claims.sweep import Walked
from rowcall_worker.runtime.claims.lanes import AGAIN, SPARE_VISITS, VISITS, Lanes

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
EARLY = Position(NOON, 0)


def at(seconds: int) -> Position:
    return Position(NOON + timedelta(seconds=seconds), seconds)


def walked(
    queue: str,
    first: Position | None = None,
    until: Position = EARLY,
    priority: int = 0,
    start: Position = BEGINNING,
    has_more: bool = False,
) -> Walked:
    return Walked(Lane(queue, priority, start), first, until, has_more)


def swept(*lanes: Walked, complete: bool = True) -> Swept:
    return Swept(lanes=lanes) if complete else Swept(place={"after_queue": "somewhere"}, lanes=lanes)


@pytest.fixture
def lanes() -> Lanes:
    return Lanes()


def visited(lanes: Lanes) -> list[tuple[str, int]]:
    return [(lane.queue, lane.priority) for lane in lanes.visits()]


def take(lanes: Lanes, queue: str, runs: int = 1, head: Position = EARLY, priority: int = 0) -> None:
    """Simulate a claim that takes this many runs from this queue, and finds all other lanes still due."""
    visits = lanes.visits()
    heads = {**{(lane.queue, lane.priority): at(0) for lane in visits}, (queue, priority): head}
    taken = Counter({(queue, priority): runs})
    claimed = [Claimed(number, 1, "noop", {}, 1, 3, None) for number in range(runs)]
    lanes.claimed(visits, ClaimResult(claimed, {}, heads=heads, taken=taken), full=True)


def find_nothing(lanes: Lanes, heads: list[str]) -> None:
    """Simulate a claim that takes nothing, although these queues have due runs."""
    result = ClaimResult([], {}, heads={(queue, 0): at(0) for queue in heads})
    lanes.claimed(lanes.visits(), result, full=False)


def start(lanes: Lanes) -> Position:
    [lane] = lanes.visits()
    return lane.start


def test_queues_take_turns_so_that_none_starves_another(lanes: Lanes) -> None:
    lanes.swept(swept(*(walked(queue, at(0)) for queue in ("mail", "old", "reports"))))
    for _ in range(2):
        for queue in ("mail", "old", "reports"):
            assert visited(lanes)[0] == (queue, 0)
            take(lanes, queue)


def test_within_a_queue_the_urgent_go_first_though_they_were_served_last(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(0), priority=5), walked("mail", at(0), priority=-1)))
    take(lanes, "mail", priority=-1)
    assert visited(lanes) == [("mail", -1), ("mail", 5)]


def test_what_had_something_last_is_looked_at_again_and_so_many_lanes_at_the_most(lanes: Lanes) -> None:
    names = [f"queue-{number:03}" for number in range(VISITS + SPARE_VISITS + 10)]
    lanes.swept(swept(*(walked(name, at(0)) for name in names)))
    assert len(visited(lanes)) == VISITS
    for name in names:
        take(lanes, name)
    lanes.claimed([Lane(name, 0) for name in names], ClaimResult([], {}), full=False)
    assert visited(lanes) == [(name, 0) for name in names[-SPARE_VISITS:]]


def test_a_lane_is_walked_from_the_first_run_to_claim_that_the_first_sweep_found(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(7), until=at(9))))
    assert start(lanes) == at(7)


def test_where_there_was_nothing_to_claim_it_is_walked_from_the_last_run_on(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", None, until=at(9))))
    assert start(lanes) == at(9)


def test_a_lane_is_not_visited_before_a_sweep_has_seen_something_to_claim_or_its_end(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", None, until=at(3), has_more=True), complete=False))
    assert visited(lanes) == []
    lanes.swept(swept(walked("mail", at(5), start=at(3))))
    assert (visited(lanes), start(lanes)) == ([("mail", 0)], at(5))


def test_claims_walk_the_last_runs_that_were_taken_again(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(0))))
    for number in range(4):
        take(lanes, "mail", AGAIN // 2, at(number))
    assert start(lanes) == at(2)
    take(lanes, "mail", AGAIN, at(9))
    assert start(lanes) == at(9)


def test_a_run_before_the_start_is_found_by_the_next_sweep(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(5))))
    take(lanes, "mail", AGAIN, at(8))
    lanes.swept(swept(walked("mail", at(2))))
    assert start(lanes) == at(2)


def test_where_claims_take_runs_a_sweep_moves_the_start_no_further_than_the_sweep_before_it_saw(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(1))))
    take(lanes, "mail", 1, at(1))
    lanes.swept(swept(walked("mail", at(30))))
    assert start(lanes) == at(1)
    lanes.swept(swept(walked("mail", at(60))))
    assert start(lanes) == at(30)


def test_a_sweep_that_began_behind_the_start_says_nothing_of_what_is_before_it(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(1)), complete=False))
    lanes.swept(swept(walked("mail", at(90), start=at(50))))
    assert start(lanes) == at(1)


def test_of_the_lanes_that_are_gone_those_are_remembered_that_had_something_last(lanes: Lanes) -> None:
    names = [f"queue-{number:03}" for number in range(SPARE_VISITS + 5)]
    lanes.swept(swept(*(walked(name, at(0)) for name in names)))
    for name in names:
        take(lanes, name)
    find_nothing(lanes, [])
    lanes.swept(swept())
    assert visited(lanes) == [(name, 0) for name in names[5:]]
    lanes.swept(swept(walked("mail", at(0))))
    assert visited(lanes)[0] == ("mail", 0)


def test_queues_that_give_nothing_do_not_starve_the_others(lanes: Lanes) -> None:
    names = [f"paused-{number:03}" for number in range(2 * VISITS)]
    lanes.swept(swept(*(walked(name, at(0)) for name in names), walked("zz", at(0))))
    for _ in range(2):
        assert lanes.unvisited
        assert ("zz", 0) not in visited(lanes)
        find_nothing(lanes, names)
    assert lanes.unvisited
    assert visited(lanes)[0] == ("zz", 0)


def test_when_each_lane_had_its_turn_in_vain_all_is_quiet_until_the_next_sweep(lanes: Lanes) -> None:
    due = [walked(f"full-{number:03}", at(0)) for number in range(VISITS + 1)]
    names = [lane.lane.queue for lane in due]
    lanes.swept(swept(*due))
    for _ in range(2):
        assert lanes.unvisited
        find_nothing(lanes, names)
    assert not lanes.unvisited
    lanes.swept(swept(*due))
    assert lanes.unvisited


def test_a_lane_for_which_there_was_no_room_keeps_its_turn(lanes: Lanes) -> None:
    lanes.swept(swept(walked("mail", at(0)), walked("reports", at(0))))
    take(lanes, "mail")
    take(lanes, "reports")
    assert visited(lanes)[0] == ("mail", 0)
