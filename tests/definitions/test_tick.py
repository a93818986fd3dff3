"""The tick: every nominal time that has come becomes one row, with its run or with the reason why there is none."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest

from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.definitions import Ticked, last_tick, pause, resume, tick
from rowcall.job_types import Catalogue, JobType, catalogue
from rowcall.job_types.builtin import AnyPayload
from rowcall.queue import enqueue
from rowcall.schedule import Outcome
from rowcall.status import LIVE, Status
from tests.definitions.keeping import OPERATOR, asleep_since, kept, move, next_of, now_is, occurred, runs_of
from tests.support.rows import run_in

HOUR = timedelta(hours=1)
BOUND = 500


def ticked(connection: PgConnection, bound: int = BOUND) -> Ticked:
    return tick(connection, "worker-1", catalogue(), bound)


def outcomes(connection: PgConnection, row: Row) -> Counter[str]:
    return Counter(one["outcome"] for one in occurred(connection, row))


def hours_before(moment: datetime, hours: int) -> list[datetime]:
    """The last full hours up to this moment, the first one first."""
    last = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return [last - HOUR * back for back in reversed(range(hours))]


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


def test_a_payload_that_names_the_time_is_that_times_and_its_key_the_business_facts(connection: PgConnection) -> None:
    row = kept(
        connection,
        job_type="cleanup_nightly",
        schedule="17 3 * * *",
        time_zone="Europe/Berlin",
        catch_up="all",
        payload={"day": "{date-1}"},
    )
    move(connection, row, datetime(2026, 3, 27, 12, tzinfo=UTC))
    fetch_all(connection, "UPDATE rowcall.job_definitions SET schedule = '17 3 28-30 3 *'")
    ticked(connection, bound=3)
    told = [(run["payload"]["day"], run["idempotency_key"]) for run in runs_of(connection, row)]
    assert told == [(f"2026-03-{day}", f"cleanup:2026-03-{day}") for day in (27, 28, 29)]


def test_a_fact_that_has_a_run_already_gets_no_second_one(connection: PgConnection) -> None:
    row = kept(connection, job_type="cleanup_nightly", schedule="* * * * *", payload={"day": "{date-1}"})
    nominal = asleep_since(connection, row, "1 minute")
    day = (nominal.astimezone(UTC).date() - timedelta(days=1)).isoformat()
    enqueue(connection, "cleanup_nightly", {"day": day})
    ticked(connection)
    [occurrence] = occurred(connection, row)
    assert (occurrence["outcome"], occurrence["run_id"]) == ("skipped", None)
    assert occurrence["reason"] == f"another run has the key cleanup:{day}"
    assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == 1


def test_a_payload_that_is_always_the_same_runs_each_time_whatever_its_natural_key(connection: PgConnection) -> None:
    row = kept(
        connection, job_type="cleanup_nightly", schedule="* * * * *", catch_up="all", payload={"day": "2026-03-28"}
    )
    asleep_since(connection, row, "3 minutes")
    ticked(connection)
    assert [run["idempotency_key"] for run in runs_of(connection, row)] == [None] * 3


def test_what_its_type_refuses_by_now_is_missed_and_says_why(connection: PgConnection) -> None:
    row = kept(connection, job_type="cleanup_nightly", schedule="* * * * *", payload={"day": "2026-03-28"})
    fetch_all(connection, 'UPDATE rowcall.job_definitions SET payload = \'{"day": "someday"}\'')
    asleep_since(connection, row, "1 minute")
    ticked(connection)
    [occurrence] = occurred(connection, row)
    assert occurrence["outcome"] == "missed"
    assert "cleanup_nightly refuses the payload: payload: day: Not a valid date" in occurrence["reason"]


def test_a_definition_that_cannot_be_decided_is_told_of_and_holds_up_no_other(connection: PgConnection) -> None:
    broken, whole = kept(connection, "broken"), kept(connection, "whole")
    for row in (broken, whole):
        asleep_since(connection, row, "2 hours")
    fetch_all(connection, "UPDATE rowcall.job_definitions SET time_zone = 'Mars/Olympus' WHERE name = 'broken'")
    done = ticked(connection)
    assert [(one.name, one.revision) for one in done.broken] == [("broken", 1)]
    assert "Mars/Olympus" in done.broken[0].error
    assert (len(occurred(connection, broken)), len(occurred(connection, whole))) == (0, 2)


def test_a_definition_that_cannot_be_decided_can_be_mended(connection: PgConnection) -> None:
    row = kept(connection, "broken")
    asleep_since(connection, row, "2 hours")
    fetch_all(connection, "UPDATE rowcall.job_definitions SET time_zone = 'Mars/Olympus' WHERE name = 'broken'")
    pause(connection, "broken", catalogue(), OPERATOR)
    resume(connection, "broken", catalogue(), OPERATOR)
    mended = kept(connection, "broken")
    assert (mended["time_zone"], mended["revision"], mended["paused_at"]) == ("UTC", 2, None)
    assert ticked(connection).broken == []


def test_a_types_own_code_that_fails_holds_up_no_other_definition(connection: PgConnection) -> None:
    module = ModuleType("team")
    vars(module).update(
        failing=JobType("failing", schema=AnyPayload, key=lambda payload: payload["missing"]),
        working=JobType("working", schema=AnyPayload),
    )
    rows = [kept(connection, name, payload={"at": "{time}"}) for name in ("failing", "working")]
    fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = name")
    for row in rows:
        asleep_since(connection, row, "2 hours")
    done = tick(connection, "worker-1", Catalogue(module), BOUND)
    assert [one.error for one in done.broken] == ["job type 'failing': its key raised KeyError: 'missing'"]
    assert [len(occurred(connection, row)) for row in rows] == [0, 2]


def test_a_type_that_is_not_known_here_is_left_to_who_knows_it(connection: PgConnection) -> None:
    row = kept(connection)
    fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = 'of_a_newer_version'")
    first = asleep_since(connection, row, "2 hours")
    done = ticked(connection)
    assert (sum(done.decided.values()), done.broken) == (0, [])
    assert next_of(connection, row) == first


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


def test_an_idle_tick_writes_nothing_for_ten_seconds(connection: PgConnection) -> None:
    ticked(connection)

    def written() -> Any:
        return fetch_value(connection, "SELECT xmin::text || ctid::text FROM rowcall.schedule_ticks")

    fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '9 seconds'")
    before = written()
    ticked(connection)
    assert written() == before
