"""`worker once` after a long sleep: it is up to date when it ends, and due runs do not wait for that."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection
from tests.definitions.keeping import (
    asleep_since,
    hourly_but_not_now,
    kept,
    minutely_but_not_now,
    next_of,
    now_is,
    occurred,
    runs_of,
)
from tests.support.gate import gate
from tests.support.processes import rowcall, running
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def test_a_minutely_schedule_is_current_after_one_start_though_all_slept_for_three_days(
    shop: Shop, connection: PgConnection
) -> None:
    row = kept(connection, schedule=minutely_but_not_now(connection), catch_up="latest")
    asleep_since(connection, row, "3 days")
    once = rowcall(shop.environment, "worker", "once")
    assert "claimed 1, succeeded 1" in once.stdout, once.stderr
    following = next_of(connection, row)
    assert following is not None
    assert following > now_is(connection)
    assert len(occurred(connection, row)) == 3 * 22 * 60
    [run] = runs_of(connection, row)
    assert run["status"] == "succeeded"


def test_when_its_time_is_up_it_leaves_the_rest_to_the_next(shop: Shop, connection: PgConnection) -> None:
    row = kept(connection, schedule=minutely_but_not_now(connection), catch_up="latest")
    asleep_since(connection, row, "1 day")
    environment = {**shop.environment, "ROWCALL_TICK_BOUND": "100"}
    assert rowcall(environment, "worker", "once", "--max-time", "0").returncode == 0
    assert len(occurred(connection, row)) <= 100
    assert "claimed 1, succeeded 1" in rowcall(environment, "worker", "once").stdout


def test_what_is_due_is_done_while_the_schedules_are_decided(shop: Shop, connection: PgConnection) -> None:
    row = kept(connection, schedule=hourly_but_not_now(connection), catch_up="latest")
    asleep_since(connection, row, "5 hours")
    due = shop.ask("noop")
    with gate(shop.url) as barred:
        barred.hold_commit("schedule_occurrences")
        with running(shop.environment, "worker", "once") as worker:
            barred.wait()
            shop.wait(due, "succeeded")
            barred.open()
            said, _ = worker.communicate()
    assert "claimed 2, succeeded 2" in said


def test_what_runs_is_finished_though_the_time_is_up(shop: Shop, tmp_path: object) -> None:
    waiting = shop.ask("shop_wait", doors=str(tmp_path))
    with running(shop.environment, "worker", "once", "--max-time", "5", "--grace", "0") as worker:
        shop.wait_for_knock(waiting)
        shop.sql("SELECT pg_sleep(5)")  # until its time is up, which the database does not show
        shop.open_door(waiting)
        said, _ = worker.communicate()
    assert "claimed 1, succeeded 1" in said
