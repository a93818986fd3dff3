"""Token buckets: which requests pass, computed from the times that are passed in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rowcall_api.http.token_bucket import Answer, Buckets, Policy

TEN_A_SECOND = Policy(per_second=10, burst=20)


def passed(buckets: Buckets, caller: str, *times: float) -> list[bool]:
    return [buckets.take(caller, now).granted for now in times]


def test_a_burst_passes_at_once_and_then_the_rate_holds() -> None:
    buckets = Buckets(TEN_A_SECOND)
    assert passed(buckets, "ada", *[0.0] * 25) == [True] * 20 + [False] * 5
    assert passed(buckets, "ada", 0.05, 0.1, 0.1, 0.2, 0.2) == [False, True, False, True, False]


def test_over_a_long_time_no_more_passes_than_burst_and_rate_together() -> None:
    buckets = Buckets(TEN_A_SECOND)
    assert sum(passed(buckets, "ada", *(tick / 128 for tick in range(128 * 60)))) == 20 + 10 * 60 - 1


def test_a_pause_fills_the_bucket_and_no_further() -> None:
    buckets = Buckets(TEN_A_SECOND)
    assert passed(buckets, "ada", *[0.0] * 20).count(True) == 20
    assert passed(buckets, "ada", *[1000.0] * 25).count(True) == 20


def test_a_refusal_costs_nothing() -> None:
    patient, eager = Buckets(Policy(1, 1)), Buckets(Policy(1, 1))
    assert passed(patient, "ada", 0, 1) == [True, True]
    assert passed(eager, "ada", 0, 0.25, 0.5, 0.75, 1) == [True, False, False, False, True]


def test_an_answer_tells_what_is_left_and_in_how_many_whole_seconds_there_is_one_more() -> None:
    buckets = Buckets(Policy(per_second=0.1, burst=2))
    assert [buckets.take("ada", now) for now in (0, 0, 0, 1, 9.5)] == [
        Answer(granted=True, left=1, seconds=10),
        Answer(granted=True, left=0, seconds=10),
        Answer(granted=False, left=0, seconds=10),
        Answer(granted=False, left=0, seconds=9),
        Answer(granted=False, left=0, seconds=1),
    ]


def test_each_caller_has_a_bucket_of_its_own() -> None:
    buckets = Buckets(Policy(1, 1))
    assert (passed(buckets, "ada", 0, 0), passed(buckets, "bob", 0, 0)) == ([True, False], [True, False])


def test_times_that_come_out_of_order_give_nothing_twice() -> None:
    buckets = Buckets(Policy(1, 1))
    assert passed(buckets, "ada", 5.0, 4.0, 5.5, 4.5, 5.9, 6.0) == [True, False, False, False, False, True]


def test_of_more_callers_than_there_is_room_for_the_longest_silent_are_forgotten() -> None:
    buckets = Buckets(Policy(1, 1), most=2)
    for caller in ("ada", "bob", "ada", "cleo"):
        buckets.take(caller, 0)
    assert [buckets.knows(caller) for caller in ("ada", "bob", "cleo")] == [True, False, True]


def test_who_is_forgotten_begins_with_a_full_bucket() -> None:
    buckets = Buckets(Policy(1, 1))
    buckets.take("ada", 0)
    buckets.forget("ada")
    buckets.forget("nobody")
    assert passed(buckets, "ada", 0) == [True]


def test_many_threads_take_no_more_than_there_is() -> None:
    buckets = Buckets(Policy(per_second=1, burst=100))
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: buckets.take("ada", 0).granted, range(1000)))
    assert answers.count(True) == 100


@pytest.mark.parametrize(("processes", "share"), [(1, Policy(50, 100)), (4, Policy(12.5, 25)), (1000, Policy(0.05, 1))])
def test_each_process_lets_its_share_through_and_one_at_least(processes: int, share: Policy) -> None:
    assert Policy(50, 100).share(processes) == share


@pytest.mark.parametrize(("policy", "window"), [(Policy(50, 100), 2), (Policy(25, 51), 3), (Policy(1000, 1), 1)])
def test_a_window_is_the_seconds_in_which_an_empty_bucket_is_full_again(policy: Policy, window: int) -> None:
    assert policy.window == window
