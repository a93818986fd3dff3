"""Runs in flight: how many a worker may take, and when it has none left."""

from __future__ import annotations

from rowcall.base.clock import elapsed
from rowcall.queue import Claimed
from rowcall.status import Status
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.in_flight import InFlight, InFlightRun

THREADS = 4


def claimed(number: int) -> InFlightRun:
    return InFlightRun("worker-1", Claimed(number, 1, "noop", {}, 1, 10, None), elapsed() + 60)


def taken(in_flight: InFlight, count: int) -> list[InFlightRun]:
    """So many runs, in flight."""
    runs = [claimed(number) for number in range(count)]
    in_flight.accept(0, runs)
    return runs


def finish_quickly(in_flight: InFlight) -> None:
    """A burst of runs that took no time at all."""
    for run in taken(in_flight, 10_000):
        in_flight.settle(run, AttemptResult())
    ended = in_flight.collect()
    in_flight.written(ended, [Status.SUCCEEDED] * len(ended))


def test_at_first_one_run_is_claimed_for_each_thread() -> None:
    assert InFlight(THREADS).reserve() == THREADS


def test_quick_runs_are_claimed_ahead() -> None:
    in_flight = InFlight(THREADS)
    finish_quickly(in_flight)
    assert in_flight.reserve() > 10 * THREADS


def test_after_an_idle_look_nothing_is_hoarded_because_the_past_was_quick() -> None:
    in_flight = InFlight(THREADS)
    finish_quickly(in_flight)
    assert in_flight.look_found_nothing(elapsed())
    assert in_flight.reserve() == THREADS


def test_a_claim_under_way_keeps_a_stopping_worker_from_leaving() -> None:
    in_flight = InFlight(THREADS)
    reserved = in_flight.reserve()
    in_flight.close()
    assert not in_flight.empty
    assert in_flight.reserve() == 0
    in_flight.accept(reserved, [])
    assert in_flight.empty


def test_what_a_claim_under_way_brings_after_the_stop_can_be_withdrawn() -> None:
    in_flight = InFlight(THREADS)
    reserved = in_flight.reserve()
    in_flight.close()
    run = claimed(1)
    in_flight.accept(reserved, [run])
    assert in_flight.withdraw() == [run]
    in_flight.drop([run])
    assert in_flight.empty


def test_only_the_first_end_of_an_attempt_counts() -> None:
    in_flight = InFlight(THREADS)
    [run] = taken(in_flight, 1)
    assert in_flight.settle(run, AttemptResult("first"))
    assert not in_flight.settle(run, AttemptResult())
    assert [ended.result.value for ended in in_flight.collect()] == ["first"]


def test_a_look_that_began_before_something_ended_does_not_count_as_quiet() -> None:
    in_flight = InFlight(THREADS)
    began_at = elapsed()
    finish_quickly(in_flight)
    assert not in_flight.look_found_nothing(began_at)
    assert not in_flight.quiet.is_set()
    assert in_flight.look_found_nothing(elapsed())
    assert in_flight.quiet.is_set()
