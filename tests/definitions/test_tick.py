"""The tick: every nominal time that has come becomes one row, with its run or the reason why there is no run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.definitions import last_tick, pause, resume
from rowcall.job_types import catalogue
from rowcall.schedule import Outcome
from rowcall.status import LIVE, Status
from tests.definitions.keeping import OPERATOR, asleep_since, kept, next_of, now_is, occurred, runs_of
from tests.definitions.ticking import hours_before, outcomes, ticked
from tests.support.rows import run_in


def test_what_has_come_is_enqueued_under_its_nominal_time_and_nothing_else_is(connection: PgConnection) -> None:
    due = kept(connection, "due", schedule="* * * * *", queue="mail", priority=-3, max_attempts=7, payload={"a": 1})
    later = kept(connection, "later", schedule="0 0 1 1 *")
    nominal = asleep_since(connection, due, "1 minute")
    assert ticked(connection).decided[Outcome.ENQUEUED] == 1
    [run], [occurrence] = runs_of(connection, due), occurred(connection, due)
    told = ("job_type", "queue", "priority", "max_attempts", "payload", "status", "created_by", "run_at")
    assert tuple(run[name] for name in told) == ("noop", "mail", -3, 7, {"a": 1}, "queued", "schedule:due", nominal)
    assert run["scheduled_for"] == nominal == occurrence["nominal_at"]
    assert (occurrence["outcome"], occurrence["run_id"], occurrence["reason"]) == ("enqueued", run["id"], None)
    assert next_of(connection, due) == nominal + timedelta(minutes=1)
    assert occurred(connection, later) == []


def test_a_second_tick_finds_nothing_left(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *")
    asleep_since(connection, row, "3 minutes")
    assert sum(ticked(connection).decided.values()) == 3
    assert sum(ticked(connection).decided.values()) == 0
    assert len(runs_of(connection, row)) == 1


@pytest.mark.parametrize(
    ("catch_up", "enqueued"),
    [("skip", 0), ("latest", 1), ("all", 6)],
)
def test_six_hours_of_outage_leave_a_row_for_every_hour_and_the_runs_that_catch_up_asks_for(
    connection: PgConnection, catch_up: str, enqueued: int
) -> None:
    late = now_is(connection) - timedelta(minutes=20)
    row = kept(connection, catch_up=catch_up, schedule=f"{late.minute} * * * *")
    asleep_since(connection, row, "6 hours")
    ticked(connection)
    told = occurred(connection, row)
    assert [one["outcome"] for one in told] == ["missed"] * (6 - enqueued) + ["enqueued"] * enqueued
    assert all(one["reason"] for one in told)
    ran = [run["scheduled_for"] for run in runs_of(connection, row)]
    assert ran == [one["nominal_at"] for one in told if one["outcome"] == "enqueued"]


def test_what_came_within_two_minutes_was_in_time_also_where_nothing_is_caught_up(connection: PgConnection) -> None:
    row = kept(connection, catch_up="skip", schedule="* * * * *", overlap="allow")
    asleep_since(connection, row, "6 minutes")
    ticked(connection)
    told = [one["outcome"] for one in occurred(connection, row)]
    assert told == ["missed"] * 4 + ["enqueued"] * 2


def test_max_lateness_bounds_what_is_caught_up(connection: PgConnection) -> None:
    row = kept(connection, catch_up="all", max_lateness="3h")
    asleep_since(connection, row, "10 hours")
    ticked(connection)
    told = {one["nominal_at"]: one["outcome"] for one in occurred(connection, row)}
    assert [told[hour] for hour in hours_before(now_is(connection), 10)] == ["missed"] * 7 + ["enqueued"] * 3


@pytest.mark.parametrize("status", Status)
def test_an_occurrence_is_skipped_while_a_run_before_it_is_not_finished(
    connection: PgConnection, status: Status
) -> None:
    row = kept(connection, schedule="* * * * *", overlap="skip")
    run = run_in(connection, status, definition_id=str(row["id"]), scheduled_for="now() - interval '1 day'")
    asleep_since(connection, row, "1 minute")
    ticked(connection)
    [occurrence] = occurred(connection, row)
    if status in LIVE:
        assert occurrence["outcome"] == "skipped"
        assert occurrence["reason"] == f"run {run['id']} is not finished yet (overlap skip)"
    else:
        assert occurrence["outcome"] == "enqueued"


def test_runs_may_overlap_where_that_is_allowed(connection: PgConnection) -> None:
    row = kept(connection, overlap="allow", catch_up="all")
    asleep_since(connection, row, "3 hours")
    ticked(connection)
    assert len(runs_of(connection, row)) == 3


def test_jitter_moves_when_it_runs_and_never_which_time_it_is(connection: PgConnection) -> None:
    rows = [kept(connection, f"d{number}", schedule="* * * * *", jitter="10m") for number in range(8)]
    for row in rows:
        asleep_since(connection, row, "1 minute")
    ticked(connection)
    moved = []
    for row in rows:
        [run] = runs_of(connection, row)
        moved.append((run["run_at"] - run["scheduled_for"]).total_seconds())
    assert all(0 <= seconds <= 600 for seconds in moved)
    assert len(set(moved)) > 4


def test_never_more_than_the_bound_a_tick_and_the_rest_at_the_next(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *", catch_up="all")
    other = kept(connection, "other", schedule="* * * * *", catch_up="all")
    asleep_since(connection, row, "25 minutes")
    asleep_since(connection, other, "2 minutes")
    done = []
    while sum(ticked(connection, bound=10).decided.values()):
        done.append((len(occurred(connection, row)), len(occurred(connection, other))))
    assert done == [(10, 2), (20, 2), (25, 2)]
    assert len(runs_of(connection, row)) == 25


def test_the_latest_is_the_latest_of_all_also_where_the_bound_cuts(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *", catch_up="latest")
    asleep_since(connection, row, "25 minutes")
    while sum(ticked(connection, bound=10).decided.values()):
        pass
    assert outcomes(connection, row) == {"missed": 24, "enqueued": 1}
    [run] = runs_of(connection, row)
    assert run["scheduled_for"] == max(one["nominal_at"] for one in occurred(connection, row))


def test_while_it_is_paused_its_times_are_written_down_as_skipped(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *")
    pause(connection, row["name"], catalogue(), OPERATOR)
    asleep_since(connection, row, "3 minutes")
    ticked(connection)
    assert outcomes(connection, row) == {"skipped": 3}
    resume(connection, row["name"], catalogue(), OPERATOR)
    assert runs_of(connection, row) == []


def test_a_resume_decides_what_came_in_the_pause_as_the_pause_had_it(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *", catch_up="all")
    pause(connection, row["name"], catalogue(), OPERATOR)
    asleep_since(connection, row, "3 minutes")
    resume(connection, row["name"], catalogue(), OPERATOR)
    ticked(connection)
    assert outcomes(connection, row) == {"skipped": 3}


def test_a_pause_decides_what_came_before_it_as_if_there_were_none(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *", catch_up="all")
    asleep_since(connection, row, "3 minutes")
    pause(connection, row["name"], catalogue(), OPERATOR)
    ticked(connection)
    assert outcomes(connection, row) == {"enqueued": 3}


def test_a_definition_without_schedule_is_never_due(connection: PgConnection) -> None:
    row = kept(connection, schedule=None)
    assert next_of(connection, row) is None
    assert ticked(connection).next_in is None


def test_a_definition_whose_schedule_was_taken_away_is_due_no_more(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *")
    asleep_since(connection, row, "1 minute")
    fetch_all(connection, "UPDATE rowcall.job_definitions SET schedule = NULL")
    ticked(connection)
    assert next_of(connection, row) is None


def test_what_was_decided_once_stays_as_it_was_also_when_the_clock_goes_back(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *", catch_up="skip")
    asleep_since(connection, row, "5 minutes")
    ticked(connection)
    before = occurred(connection, row)
    fetch_all(connection, "UPDATE rowcall.job_definitions SET catch_up = 'all', overlap = 'allow'")
    asleep_since(connection, row, "5 minutes")
    ticked(connection)
    assert occurred(connection, row) == before
    assert len(runs_of(connection, row)) == sum(one["outcome"] == "enqueued" for one in before)


def test_a_tick_tells_when_the_next_time_comes(connection: PgConnection) -> None:
    row = kept(connection, schedule="* * * * *")
    kept(connection, "later", schedule="0 0 1 1 *")
    next_in = ticked(connection).next_in
    assert next_in is not None
    assert next_in <= 60
    asleep_since(connection, row, "20 minutes")
    assert (ticked(connection, bound=5).next_in or 0) < 0


def test_each_tick_is_a_sign_of_life_and_the_first_after_a_silence_says_since_when(connection: PgConnection) -> None:
    fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 minute', worker = NULL")
    assert ticked(connection).slept_since is None
    last = last_tick(connection)
    assert (last["ticked_at"], last["worker"]) == (now_is(connection), "worker-1")
    [silent] = fetch_all(
        connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 hour' RETURNING ticked_at AS at"
    )
    assert ticked(connection).slept_since == silent["at"]


def test_the_first_tick_after_the_migration_is_recorded_at_once(connection: PgConnection) -> None:
    fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now(), worker = NULL")
    ticked(connection)
    assert last_tick(connection)["worker"] == "worker-1"


def test_an_idle_tick_writes_nothing_for_ten_seconds(connection: PgConnection) -> None:
    ticked(connection)

    def written() -> Any:
        return fetch_value(connection, "SELECT xmin::text || ctid::text FROM rowcall.schedule_ticks")

    fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '9 seconds'")
    before = written()
    ticked(connection)
    assert written() == before
