"""Schedulers that are killed or delayed, run twice, or meet edits decide each nominal time exactly once.

The last year contains both clock changes of a time zone.  So workers that wake today and must decide a whole year pass
both, and the test knows in advance which times they must find.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rowcall import definitions
from rowcall.base import database
from rowcall.base.database import PgConnection, Row
from rowcall.definitions import Content
from rowcall.job_types import catalogue
from tests.core.schedule.oracle import Oracle
from tests.definitions.keeping import OPERATOR, asleep_since, hourly_but_not_now, kept, move, next_of, occurred, runs_of
from tests.support.gate import Gate, gate
from tests.support.processes import rowcall, running, start, wait_until
from tests.support.shop import Shop, kill

# Any such period contains both clock changes of each zone.
DAYS = 380

DECLARED = {
    "berlin-missing": ("30 2 * * *", "Europe/Berlin"),
    "berlin-sundays": ("0 * * * SUN", "Europe/Berlin"),
    "new-york": ("30 1,2 * * *", "America/New_York"),
    "lord-howe": ("15,45 1-2 * * SUN", "Australia/Lord_Howe"),
}


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    shop = Shop(environment, fresh_url)
    del shop.environment["ROWCALL_APP"]
    return shop


@pytest.fixture
def barred(shop: Shop) -> Iterator[Gate]:
    with gate(shop.url) as barred:
        yield barred


def decided(connection: PgConnection) -> int:
    count: int = database.fetch_value(connection, "SELECT count(*) FROM rowcall.schedule_occurrences")
    return count


def test_two_schedulers_that_are_killed_again_and_again_through_both_clock_changes_miss_nothing_and_double_nothing(
    shop: Shop, connection: PgConnection
) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start_of_sleep = now - timedelta(days=DAYS)
    rows = {
        name: kept(connection, name, schedule=schedule, time_zone=zone, catch_up="all")
        for name, (schedule, zone) in DECLARED.items()
    }
    expected = {
        name: Oracle(schedule).times(ZoneInfo(zone), start_of_sleep, now) for name, (schedule, zone) in DECLARED.items()
    }
    for row in rows.values():
        move(connection, row, start_of_sleep)
    # A low bound, so that there are many moments at which a scheduler can be killed.
    environment = {**shop.environment, "ROWCALL_TICK_BOUND": "7", "ROWCALL_POLL": "0.01"}
    killed = 0
    workers = [start(environment, "worker", "run", "--types", "expire_keys") for _ in range(2)]
    whole = sum(map(len, expected.values()))
    while decided(connection) < whole:
        before = decided(connection)
        wait_until(lambda: decided(connection) >= min(before + 250, whole), "the schedulers progress")  # noqa: B023
        kill(workers[killed % 2])
        workers[killed % 2] = start(environment, "worker", "run", "--types", "expire_keys")
        killed += 1
    for worker in workers:
        kill(worker)
    assert killed > 5
    shop.wait_for_the_server()
    for name, times in expected.items():
        # Ignore times that came during the test, which the oracle does not contain.
        found = [one["nominal_at"] for one in occurred(connection, rows[name]) if one["nominal_at"] <= now]
        assert found == times, name
        assert [run["scheduled_for"] for run in runs_of(connection, rows[name])][: len(times)] == times, name


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "undone"])
def test_a_worker_killed_at_its_ticks_commit_has_decided_all_or_nothing(
    shop: Shop, connection: PgConnection, barred: Gate, carried_out: bool
) -> None:
    row = kept(connection, schedule=hourly_but_not_now(connection), catch_up="all")
    first = asleep_since(connection, row, "5 hours")
    barred.hold_commit("schedule_occurrences")
    worker = start(shop.environment, "worker", "once")
    barred.wait()
    kill(worker)
    if carried_out:
        barred.open()
    else:
        barred.turn_away()
    shop.wait_for_the_server()
    assert len(occurred(connection, row)) == len(runs_of(connection, row)) == (5 if carried_out else 0)
    assert (next_of(connection, row) == first) is not carried_out
    worked = rowcall(shop.environment, "worker", "once")
    assert worked.returncode == 0, worked.stderr
    told = occurred(connection, row)
    assert [one["outcome"] for one in told] == ["enqueued"] * len(told)
    assert [run["scheduled_for"] for run in runs_of(connection, row)] == [one["nominal_at"] for one in told]
    assert told[0]["nominal_at"] == first


def test_an_edit_while_a_tick_runs_waits_for_it_and_begins_behind_it(
    shop: Shop, connection: PgConnection, barred: Gate
) -> None:
    row = kept(connection, schedule="* * * * *", catch_up="all")
    asleep_since(connection, row, "5 minutes")
    barred.hold_commit("schedule_occurrences")
    edited: list[Row] = []
    with running(shop.environment, "worker", "run", "--types", "expire_keys"):
        barred.wait()
        editing = threading.Thread(target=lambda: edited.append(edit(shop.url, row, "*/2 * * * *")))
        editing.start()
        barred_by_the_tick = (
            "SELECT count(*) AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND wait_event = 'transactionid' AND datname = current_database()"
        )
        wait_until(lambda: shop.sql(barred_by_the_tick)[0]["waiting"], "the edit waits for the tick")
        barred.open()
        editing.join()
    [after] = edited
    told = occurred(connection, row)
    assert [one["revision"] for one in told[:5]] == [1] * 5
    assert after["revision"] == 2
    assert after["next_run_at"] > told[4]["nominal_at"]
    assert after["next_run_at"].minute % 2 == 0
    assert len({run["scheduled_for"] for run in runs_of(connection, row)}) == len(runs_of(connection, row)) >= 5


def test_a_tick_while_an_edit_runs_passes_it_by_and_goes_by_the_new_rules_after(
    shop: Shop, connection: PgConnection
) -> None:
    row = kept(connection, schedule=hourly_but_not_now(connection), catch_up="all")
    asleep_since(connection, row, "5 hours")
    with database.transaction(shop.url) as editing:
        put(editing, row, "0 0 1 1 *")
        assert "claimed 0" in rowcall(shop.environment, "worker", "once").stdout
        assert occurred(connection, row) == []
    # The edit itself has decided the earlier times, by the old rules.
    assert [one["revision"] for one in occurred(connection, row)] == [1] * 5
    assert "claimed 5" in rowcall(shop.environment, "worker", "once").stdout
    assert len(occurred(connection, row)) == 5


def test_six_hours_without_a_worker_and_the_first_that_wakes_catches_up(shop: Shop, connection: PgConnection) -> None:
    rows = {}
    # The last time was too long ago to count as on time, at any time of day.
    minute = (datetime.now(UTC) - timedelta(minutes=20)).minute
    for catch_up in ("skip", "latest", "all"):
        rows[catch_up] = kept(connection, catch_up, catch_up=catch_up, schedule=f"{minute} * * * *")
        asleep_since(connection, rows[catch_up], "6 hours")
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    ran = {name: [run["status"] for run in runs_of(connection, row)] for name, row in rows.items()}
    assert ran == {"skip": [], "latest": ["succeeded"], "all": ["succeeded"] * 6}
    assert all(len(occurred(connection, row)) == 6 for row in rows.values())


def edit(url: str, row: Row, schedule: str) -> Row:
    with database.transaction(url) as connection:
        return put(connection, row, schedule)


def put(connection: PgConnection, row: Row, schedule: str) -> Row:
    content = definitions.as_sent(Content.of(row)) | {"schedule": schedule}
    checked = definitions.checked(row["name"], content, catalogue())
    return definitions.put(connection, row["name"], checked, catalogue(), "api", OPERATOR).row
