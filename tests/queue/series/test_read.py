"""Reading the series: a point for each step, whether something happened in it or not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import FilterInvalid
from rowcall.queue.series.read import POINTS_MOST, STEPS, read_series
from rowcall.queue.series.record import begin_counting
from tests.support.counted import counted

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NOTHING = {"p50": None, "p95": None, "p99": None}


def test_empty_steps_are_zero(connection: PgConnection) -> None:
    series = read_series(connection, NOON, NOON + 3 * MINUTE)
    assert [point.pop("at") for point in series.points] == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    ends = dict.fromkeys(("succeeded", "failed", "dead", "cancelled", "snoozed", "released"), 0)
    assert series.points == [{**ends, "waiting": NOTHING, "running": NOTHING}] * 3


def test_workers_and_types_are_added_up(connection: PgConnection) -> None:
    counted(connection, NOON, "w1", succeeded=3, ran=(6.0,))
    counted(connection, NOON, "w2", succeeded=4, failed=1, ran=(6.0,))
    counted(connection, NOON, "w1", "other", snoozed=2, waited=(6.0,))
    [point] = read_series(connection, NOON, NOON + MINUTE).points
    assert (point["succeeded"], point["failed"], point["snoozed"]) == (7, 1, 2)
    assert (point["running"]["p50"], point["waiting"]["p50"]) == (7.5, 7.5)
    [of_type] = read_series(connection, NOON, NOON + MINUTE, job_type="other").points
    assert (of_type["succeeded"], of_type["snoozed"], of_type["running"]) == (0, 2, NOTHING)


@pytest.mark.parametrize(("step", "points"), [("1m", 121), ("5m", 25), ("1h", 3), ("1d", 1)])
def test_a_step_adds_up_its_minutes(connection: PgConnection, step: str, points: int) -> None:
    for minutes in range(-1, 122):
        counted(connection, NOON + minutes * MINUTE, succeeded=1)
    series = read_series(connection, NOON, NOON + 121 * MINUTE, step)
    assert len(series.points) == points
    length = STEPS[step]
    assert all(point["at"].timestamp() % length == 0 for point in series.points)
    assert (series.until - series.since).total_seconds() == points * length
    within = fetch_value(
        connection,
        "SELECT count(*) FROM rowcall.run_counts WHERE minute >= %(since)s AND minute < %(until)s",
        {"since": series.since, "until": series.until},
    )
    assert sum(point["succeeded"] for point in series.points) == within


def test_the_range_grows_to_whole_steps(connection: PgConnection) -> None:
    series = read_series(connection, NOON + timedelta(seconds=59), NOON + timedelta(seconds=61))
    assert (series.since, series.until) == (NOON, NOON + 2 * MINUTE)


def test_the_default_is_the_last_hour_by_the_minute(connection: PgConnection) -> None:
    now: datetime = fetch_value(connection, "SELECT now()")
    series = read_series(connection)
    assert len(series.points) in (60, 61)  # 60 if the clock is at a whole minute
    assert series.points[-1]["at"] <= now <= series.until
    assert series.since <= now - timedelta(hours=1)


def test_deploys_are_the_versions_first_seen_in_the_range(connection: PgConnection) -> None:
    for version, seconds in (("1.0", -1), ("1.1", 0), ("1.2", 59), ("1.3", 60)):
        begin_counting(connection, version)
        fetch_all(
            connection,
            "UPDATE rowcall.worker_versions SET first_seen_at = %(at)s WHERE version = %(version)s",
            {"at": NOON + timedelta(seconds=seconds), "version": version},
        )
    deploys = read_series(connection, NOON, NOON + MINUTE).deploys
    assert deploys == [{"version": "1.1", "at": NOON}, {"version": "1.2", "at": NOON + timedelta(seconds=59)}]


@pytest.mark.parametrize(
    ("days", "step", "told"),
    [
        (2, "1m", "gives 2880 points, and the limit is 1500: use 5m, or a shorter range"),
        (8, "1m", "gives 11520 points, and the limit is 1500: use 1h, or a shorter range"),
        (365, "1h", "gives 8760 points, and the limit is 1500: use 1d, or a shorter range"),
        (3650, "1d", "gives 3651 points, and the limit is 1500: use a shorter range"),
    ],
)
def test_too_many_points_are_refused_with_the_smallest_step_that_fits(
    connection: PgConnection, days: int, step: str, told: str
) -> None:
    with pytest.raises(FilterInvalid) as refused:
        read_series(connection, NOON, NOON + timedelta(days=days), step)
    assert refused.value.fields == {"step": told}


def test_the_limit_itself_is_allowed(connection: PgConnection) -> None:
    assert len(read_series(connection, NOON, NOON + POINTS_MOST * MINUTE).points) == POINTS_MOST


@pytest.mark.parametrize("seconds", [0, -1])
def test_an_empty_range_is_refused(connection: PgConnection, seconds: int) -> None:
    with pytest.raises(FilterInvalid, match="from: must be before the end of the range, which is 20") as refused:
        read_series(connection, NOON, NOON + timedelta(seconds=seconds))
    assert refused.value.fields.keys() == {"from"}
