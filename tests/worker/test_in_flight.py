"""Runs in flight: how many a worker may claim, and when it has none left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rowcall.base.clock import elapsed
from rowcall.queue import Claimed
from rowcall.status import Status
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.claims.pace import SAMPLES, WINDOW_SECONDS, Pace, Room
from rowcall_worker.runtime.in_flight import KEPT_SECONDS, InFlight

THREADS = 4


def claimed(number: int) -> InFlightRun:
    return InFlightRun("worker-1", Claimed(number, 1, "noop", {}, 1, 10, None), elapsed() + 60)


def taken(in_flight: InFlight, count: int) -> list[InFlightRun]:
    """Take this many runs in flight."""
    runs = [claimed(number) for number in range(count)]
    in_flight.accept(0, runs)
    return runs


def finish(in_flight: InFlight, runs: list[InFlightRun], seconds: float = 0.0) -> None:
    """Finish these runs, as if their handlers took this long."""
    for run in runs:
        run.begun_at = elapsed() - seconds
        in_flight.waiting.get()
        in_flight.settle(run, AttemptResult())
    ended = in_flight.collect()
    in_flight.written(ended, [Status.SUCCEEDED] * len(ended))


def finish_for_a_while(in_flight: InFlight, seconds: float = 0.0) -> None:
    """Finish one batch after another, over several windows of the pace."""
    until = elapsed() + 3 * WINDOW_SECONDS
    while elapsed() < until:
        finish(in_flight, taken(in_flight, 100), seconds)


def test_at_first_one_run_is_claimed_for_each_thread() -> None:
    assert InFlight(THREADS).reserve() == Room(THREADS, 0)


def test_quick_runs_are_claimed_ahead() -> None:
    in_flight = InFlight(THREADS)
    finish_for_a_while(in_flight)
    room = in_flight.reserve()
    assert (room.slots, in_flight.quick_types()) == (THREADS, ["noop"])
    assert room.ahead > 10 * THREADS


def test_the_pace_is_never_read_while_another_thread_may_add_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    in_flight = InFlight(THREADS)
    for method in (Pace.handled, Pace.written, Pace.quick_types, Pace.ahead):

        def called(pace: Pace, *arguments: Any, method: Callable[..., Any] = method) -> Any:
            assert in_flight._lock.locked()
            return method(pace, *arguments)

        monkeypatch.setattr(Pace, method.__name__, called)
    runs = taken(in_flight, 10 * THREADS)
    assert in_flight.full
    finish(in_flight, runs)
    assert in_flight.reserve().slots == THREADS
    assert in_flight.quick_types() == ["noop"]


def test_nothing_is_claimed_ahead_by_what_slow_handlers_end_at_the_same_moment() -> None:
    in_flight = InFlight(THREADS)
    finish_for_a_while(in_flight, seconds=3)
    assert (in_flight.reserve(), in_flight.quick_types()) == (Room(THREADS, 0), [])


def test_a_type_is_not_quick_before_enough_of_its_runs_have_ended_and_stops_being_so_with_a_slow_one() -> None:
    in_flight = InFlight(THREADS)
    finish(in_flight, taken(in_flight, SAMPLES - 1))
    assert in_flight.quick_types() == []
    finish(in_flight, taken(in_flight, 1))
    assert in_flight.quick_types() == ["noop"]
    finish(in_flight, taken(in_flight, 1), seconds=3)
    assert in_flight.quick_types() == []


def test_what_waits_unbegun_for_too_long_goes_back_and_is_not_claimed_ahead_again_until_a_slot_is_free() -> None:
    in_flight = InFlight(THREADS)
    finish_for_a_while(in_flight)
    runs = taken(in_flight, THREADS + 2)
    for run in runs[:THREADS]:
        assert in_flight.waiting.get() is run
        run.begun_at = elapsed()
    assert in_flight.late() == []
    for run in runs:
        run.accepted_at -= KEPT_SECONDS
    late = in_flight.late()
    assert late == runs[THREADS:]
    in_flight.drop(late)
    assert in_flight.reserve() == Room(0, 0)
    in_flight.settle(runs[0], AttemptResult())
    in_flight.written(in_flight.collect(), [Status.SUCCEEDED])
    assert in_flight.reserve().slots == 1
    assert in_flight.reserve().ahead > 0


def test_a_claim_under_way_keeps_a_stopping_worker_from_leaving() -> None:
    in_flight = InFlight(THREADS)
    reserved = in_flight.reserve()
    in_flight.close()
    assert not in_flight.empty
    assert in_flight.reserve() == Room(0, 0)
    in_flight.accept(sum(reserved), [])
    assert in_flight.empty


def test_a_look_that_began_before_the_schedules_were_decided_says_nothing_about_what_is_due() -> None:
    in_flight = InFlight(THREADS)
    began_at = elapsed()
    in_flight.look_again()
    assert not in_flight.look_found_nothing(began_at)
    assert in_flight.look_found_nothing(elapsed())


def test_nothing_is_quiet_before_the_schedules_are_decided() -> None:
    in_flight = InFlight(THREADS, deciding=True)
    assert in_flight.look_found_nothing(elapsed())
    assert not in_flight.quiet.is_set()
    in_flight.look_again()
    assert in_flight.look_found_nothing(elapsed())
    assert in_flight.quiet.is_set()


def test_who_found_all_slots_reserved_is_woken_when_the_claim_under_way_is_answered() -> None:
    in_flight = InFlight(THREADS)
    waker = in_flight.wake_ups.waker()
    first = in_flight.reserve()
    waker.clear()
    assert in_flight.reserve() == Room(0, 0)
    in_flight.accept(sum(first), [])
    assert waker.is_set()


def test_who_found_all_slots_reserved_does_not_wake_itself() -> None:
    in_flight = InFlight(THREADS)
    waker = in_flight.wake_ups.waker()
    first = in_flight.reserve()
    waker.clear()
    in_flight.accept(sum(in_flight.reserve()), [])
    assert not waker.is_set()
    in_flight.accept(sum(first), [])
    assert waker.is_set()


def test_a_notification_wakes_only_the_leading_producer_because_the_other_one_would_claim_nothing() -> None:
    wake_ups = InFlight(THREADS).wake_ups
    other, leading = wake_ups.waker(leads=False), wake_ups.waker(leads=True)
    leading.clear()
    other.clear()
    wake_ups.hear()
    assert (leading.is_set(), other.is_set()) == (True, False)


def test_an_answered_claim_wakes_nobody_who_was_not_turned_away() -> None:
    in_flight = InFlight(THREADS)
    waker = in_flight.wake_ups.waker()
    waker.clear()
    in_flight.accept(sum(in_flight.reserve()), [])
    assert not waker.is_set()


def test_what_a_claim_under_way_brings_after_the_stop_can_be_withdrawn() -> None:
    in_flight = InFlight(THREADS)
    reserved = in_flight.reserve()
    in_flight.close()
    run = claimed(1)
    in_flight.accept(sum(reserved), [run])
    assert in_flight.waiting.empty(), "a thread could start it"
    assert not in_flight.empty
    assert in_flight.withdraw() == [run]
    in_flight.drop([run])
    assert in_flight.empty


def test_what_a_claim_under_way_brings_to_a_once_that_is_over_is_still_begun() -> None:
    in_flight = InFlight(THREADS)
    reserved = in_flight.reserve()
    in_flight.close(begins=True)
    run = claimed(1)
    in_flight.accept(sum(reserved), [run])
    assert in_flight.waiting.get_nowait() is run


@pytest.mark.parametrize("error", [ValueError("odd"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_whatever_ends_an_essential_thread_ends_the_worker(error: BaseException) -> None:
    in_flight = InFlight(THREADS)

    def work() -> None:
        raise error

    in_flight.guarded(work)()
    assert in_flight.failure is error
    assert in_flight.quiet.is_set()


def test_only_the_first_end_of_an_attempt_counts() -> None:
    in_flight = InFlight(THREADS)
    [run] = taken(in_flight, 1)
    assert in_flight.settle(run, AttemptResult("first"))
    assert not in_flight.settle(run, AttemptResult())
    assert [ended.result.value for ended in in_flight.collect()] == ["first"]


def test_a_look_that_began_before_something_ended_does_not_count_as_quiet() -> None:
    in_flight = InFlight(THREADS)
    began_at = elapsed()
    finish(in_flight, taken(in_flight, 1))
    assert not in_flight.look_found_nothing(began_at)
    assert not in_flight.quiet.is_set()
    assert in_flight.look_found_nothing(elapsed())
    assert in_flight.quiet.is_set()
