"""What a tick decides about the nominal times that have come."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.schedule import CatchUp, Decided, Outcome, Overlap, Rule, Times, asleep, decide

HOURLY = Rule(Times.of("0 * * * *", "Europe/Berlin"), overlap=Overlap.ALLOW, name="report")
PUNCTUAL = timedelta(minutes=2)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
ENQUEUED, SKIPPED, MISSED = Outcome.ENQUEUED, Outcome.SKIPPED, Outcome.MISSED


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return MIDNIGHT + timedelta(hours=hour, minutes=minute, seconds=second)


def tick(rule: Rule, first: datetime, now: datetime, bound: int = 100, live: int | None = None) -> Decided:
    return decide(rule, first, now, punctual=PUNCTUAL, bound=bound, live=live)


def outcomes(decided: Decided) -> list[Outcome]:
    return [decision.outcome for decision in decided.decisions]


def reasons(decided: Decided) -> list[str | None]:
    return [decision.reason for decision in decided.decisions]


def test_a_punctual_occurrence_is_enqueued_without_a_word() -> None:
    decided = tick(HOURLY, at(3), at(3, 1))
    (decision,) = decided.decisions
    assert (decision.nominal, decision.outcome, decision.reason, decision.run_at) == (at(3), ENQUEUED, None, at(3))
    assert decided.next_at == at(4)


def test_what_has_not_come_is_not_decided() -> None:
    assert tick(HOURLY, at(3), at(2, 59, 59)) == Decided([], at(3))


def test_an_occurrence_is_due_in_the_very_moment_of_its_time() -> None:
    assert outcomes(tick(HOURLY, at(3), at(3))) == [ENQUEUED]


# An outage of six hours: 03:00 to 08:00 have come when a worker wakes at 08:20.


def test_catch_up_latest_runs_the_last_of_an_outage_and_says_how_late() -> None:
    decided = tick(HOURLY, at(3), at(8, 20))
    assert outcomes(decided) == [MISSED] * 5 + [ENQUEUED]
    superseded = "superseded by the nominal time 2026-11-21 09:00+01:00 (catch_up latest)"
    assert reasons(decided) == [superseded] * 5 + ["20 min late"]
    assert decided.next_at == at(9)


def test_catch_up_all_runs_every_one_of_an_outage() -> None:
    decided = tick(replace(HOURLY, catch_up=CatchUp.ALL), at(3), at(8, 20))
    assert [(decision.nominal, decision.run_at) for decision in decided.decisions] == [
        (at(hour), at(hour)) for hour in range(3, 9)
    ]
    assert outcomes(decided) == [ENQUEUED] * 6
    assert reasons(decided)[0] == "5 h 20 min late"


def test_catch_up_skip_runs_none_of_an_outage_but_the_one_that_is_on_time() -> None:
    rule = replace(HOURLY, catch_up=CatchUp.SKIP)
    decided = tick(rule, at(3), at(8, 20))
    assert outcomes(decided) == [MISSED] * 6
    assert set(reasons(decided)) == {"no worker enqueued it in time (catch_up skip)"}
    assert outcomes(tick(rule, at(3), at(8, 2))) == [MISSED] * 5 + [ENQUEUED]
    assert outcomes(tick(rule, at(3), at(8, 2, 1))) == [MISSED] * 6


@pytest.mark.parametrize("catch_up", CatchUp)
def test_max_lateness_bounds_what_is_caught_up(catch_up: CatchUp) -> None:
    rule = replace(HOURLY, catch_up=catch_up, max_lateness=timedelta(hours=2, minutes=20))
    decided = tick(rule, at(3), at(8, 20, 0))
    late = "3 h 20 min late, and max_lateness is 2 h 20 min"
    assert (decided.decisions[2].outcome, decided.decisions[2].reason) == (MISSED, late)
    assert (
        outcomes(decided)[3:]
        == {
            CatchUp.SKIP: [MISSED, MISSED, MISSED],
            CatchUp.LATEST: [MISSED, MISSED, ENQUEUED],
            CatchUp.ALL: [ENQUEUED, ENQUEUED, ENQUEUED],
        }[catch_up]
    )


def test_max_lateness_counts_for_the_latest_too() -> None:
    rule = replace(HOURLY, max_lateness=timedelta(minutes=10))
    decided = tick(rule, at(3), at(3, 10) + timedelta(milliseconds=1))
    assert reasons(decided) == ["10 min 1 s late, and max_lateness is 10 min"]
    assert outcomes(tick(rule, at(3), at(3, 10))) == [ENQUEUED]


def test_a_run_that_is_not_finished_keeps_the_next_from_starting() -> None:
    rule = replace(HOURLY, overlap=Overlap.SKIP)
    decided = tick(rule, at(3), at(3, 1), live=7)
    assert (outcomes(decided), reasons(decided)) == ([SKIPPED], ["run 7 is not finished yet (overlap skip)"])
    assert outcomes(tick(rule, at(3), at(3, 1))) == [ENQUEUED]
    assert outcomes(tick(HOURLY, at(3), at(3, 1), live=7)) == [ENQUEUED]


def test_runs_of_one_tick_do_not_overlap_either() -> None:
    decided = tick(replace(HOURLY, catch_up=CatchUp.ALL, overlap=Overlap.SKIP), at(3), at(5, 1))
    assert outcomes(decided) == [ENQUEUED, SKIPPED, SKIPPED]
    assert reasons(decided)[2] == "the run for 2026-11-21 04:00+01:00 is not finished yet (overlap skip)"


def test_a_paused_schedule_skips_whatever_else_holds() -> None:
    rule = replace(HOURLY, paused=True, max_lateness=timedelta(0), overlap=Overlap.SKIP)
    decided = tick(rule, at(3), at(5, 1), live=7)
    assert (outcomes(decided), set(reasons(decided))) == ([SKIPPED] * 3, {"paused"})
    assert decided.next_at == at(6)


def test_what_is_too_late_is_missed_though_a_run_is_not_finished() -> None:
    rule = replace(HOURLY, max_lateness=timedelta(minutes=5), overlap=Overlap.SKIP)
    assert outcomes(tick(rule, at(3), at(4, 1), live=7)) == [MISSED, SKIPPED]


def test_more_than_the_bound_is_left_to_the_next_tick() -> None:
    rule = replace(HOURLY, catch_up=CatchUp.ALL)
    decided = tick(rule, at(3), at(8, 20), bound=4)
    assert [decision.nominal for decision in decided.decisions] == [at(3), at(4), at(5), at(6)]
    assert decided.next_at == at(7)
    assert tick(rule, at(3), at(8, 20), bound=0) == Decided([], at(3))


def test_the_latest_is_known_though_it_lies_beyond_the_bound() -> None:
    decided = tick(HOURLY, at(3), at(8, 20), bound=3)
    assert outcomes(decided) == [MISSED] * 3
    assert reasons(decided)[2] == "superseded by the nominal time 2026-11-21 09:00+01:00 (catch_up latest)"
    assert outcomes(tick(HOURLY, at(6), at(8, 20), bound=3)) == [MISSED, MISSED, ENQUEUED]


@given(
    st.sampled_from(CatchUp),
    st.sampled_from([None, timedelta(hours=3)]),
    st.integers(1, 5),
    st.integers(0, 12 * 60),
)
def test_how_an_outage_is_cut_into_ticks_changes_nothing(
    catch_up: CatchUp, max_lateness: timedelta | None, bound: int, minutes: int
) -> None:
    rule = replace(HOURLY, catch_up=catch_up, max_lateness=max_lateness)
    now = at(0, minutes)
    whole = tick(rule, at(0), now)
    pieces, next_at = [], at(0)
    while next_at <= now:
        piece = tick(rule, next_at, now, bound=bound)
        assert piece.next_at is not None
        pieces += piece.decisions
        next_at = piece.next_at
    assert (pieces, next_at) == (whole.decisions, whole.next_at)


def test_a_schedule_without_another_time_says_so() -> None:
    rule = Rule(Times.of("@yearly", "UTC"))
    last = datetime(9998, 1, 1, tzinfo=UTC)
    assert tick(rule, last, last).next_at is None


def test_jitter_moves_a_run_by_the_same_whole_seconds_for_ever() -> None:
    rule = replace(HOURLY, jitter=timedelta(minutes=10))
    offsets = {tick(rule, at(hour), at(hour)).decisions[0].run_at - at(hour) for hour in range(24)}  # type: ignore[operator]
    # A fixed value, because another version of Rowcall must not move runs.
    assert offsets == {timedelta(seconds=310)}


def test_jitter_spreads_definitions_over_its_whole_length_and_no_further() -> None:
    jitter = timedelta(seconds=4.9)
    offsets = set()
    for number in range(200):
        (decision,) = tick(replace(HOURLY, name=f"report-{number}", jitter=jitter), at(3), at(3)).decisions
        assert decision.run_at is not None
        offsets.add((decision.run_at - at(3)).total_seconds())
    assert offsets == {0, 1, 2, 3, 4}


def test_a_sleep_is_what_the_tick_after_it_would_decide() -> None:
    for catch_up in CatchUp:
        rule = replace(HOURLY, catch_up=catch_up)
        slept = asleep(rule, at(2), at(8, 20), punctual=PUNCTUAL, bound=100)
        assert slept == tick(rule, at(3), at(8, 20)).decisions
        assert [decision.nominal for decision in slept] == [at(hour) for hour in range(3, 9)]
    assert asleep(HOURLY, at(3), at(3, 59), punctual=PUNCTUAL, bound=100) == []


def test_a_sleep_of_years_is_cut_at_the_bound() -> None:
    minutely = replace(HOURLY, times=Times.of("* * * * *", "UTC"))
    slept = asleep(minutely, MIDNIGHT, MIDNIGHT + timedelta(days=1500), punctual=PUNCTUAL, bound=3)
    assert [decision.outcome for decision in slept] == [MISSED] * 3
    assert slept[0].reason == "superseded by the nominal time 2030-12-30 00:00+00:00 (catch_up latest)"
