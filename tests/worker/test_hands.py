"""What a worker has in hand: how much it may take, and when it has nothing left."""

from __future__ import annotations

from shared.clock import elapsed
from shared.queue import Claimed
from shared.status import Status
from worker.hands import Hands, HeldRun, Outcome

THREADS = 4


def taken(hands: Hands, count: int) -> list[HeldRun]:
    """As many runs in hand as were asked for."""
    runs = [HeldRun(Claimed(n, 1, "noop", {}, 1, 10, None), elapsed() + 60) for n in range(count)]
    hands.accept(0, runs)
    return runs


def finish_quickly(hands: Hands) -> None:
    """A burst of runs that took no time at all."""
    for run in taken(hands, 10_000):
        hands.settle(Outcome(run))
    outcomes = hands.collect()
    hands.written(outcomes, [Status.SUCCEEDED] * len(outcomes))


def test_at_first_one_run_is_claimed_for_each_thread() -> None:
    assert Hands(THREADS).reserve() == THREADS


def test_quick_runs_are_claimed_ahead() -> None:
    hands = Hands(THREADS)
    finish_quickly(hands)
    assert hands.reserve() > 10 * THREADS


def test_after_an_idle_look_nothing_is_hoarded_because_the_past_was_quick() -> None:
    hands = Hands(THREADS)
    finish_quickly(hands)
    assert hands.look_found_nothing(elapsed())
    assert hands.reserve() == THREADS


def test_a_claim_under_way_keeps_a_stopping_worker_from_leaving() -> None:
    hands = Hands(THREADS)
    reserved = hands.reserve()
    hands.close()
    assert not hands.empty
    assert hands.reserve() == 0
    hands.accept(reserved, [])
    assert hands.empty


def test_what_a_claim_under_way_brings_after_the_stop_can_be_withdrawn() -> None:
    hands = Hands(THREADS)
    reserved = hands.reserve()
    hands.close()
    run = HeldRun(Claimed(1, 1, "noop", {}, 1, 10, None), elapsed() + 60)
    hands.accept(reserved, [run])
    assert hands.withdraw() == [run]
    hands.drop([run])
    assert hands.empty


def test_only_the_first_end_of_an_attempt_counts() -> None:
    hands = Hands(THREADS)
    [run] = taken(hands, 1)
    assert hands.settle(Outcome(run, "first"))
    assert not hands.settle(Outcome(run))
    assert [outcome.result for outcome in hands.collect()] == ["first"]


def test_a_look_that_began_before_something_ended_does_not_count_as_quiet() -> None:
    hands = Hands(THREADS)
    began_at = elapsed()
    finish_quickly(hands)
    assert not hands.look_found_nothing(began_at)
    assert not hands.quiet.is_set()
    assert hands.look_found_nothing(elapsed())
    assert hands.quiet.is_set()
