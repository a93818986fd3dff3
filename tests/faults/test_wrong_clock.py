"""A worker whose wall clock is 45 minutes off: only the database's clock decides what is due, and until when."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.database import Row
from tests.definitions.keeping import asleep_since, hourly_but_not_now, kept
from tests.support.processes import rowcall, running, wait_until
from tests.support.shop import Shop
from tests.support.wrong_clock import wrong_clock

pytestmark = pytest.mark.program("faketime")

MINUTES = 45


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.fixture(params=[MINUTES, -MINUTES], ids=["fast", "slow"])
def minutes(request: pytest.FixtureRequest) -> int:
    """Return how many minutes the worker's clock is ahead."""
    offset: int = request.param
    return offset


@pytest.fixture
def wrong(shop: Shop, minutes: int) -> dict[str, str]:
    """Return the environment of a worker with a wrong wall clock and a correct monotonic clock."""
    return wrong_clock(shop.environment, minutes)


def minutes_ahead(told: Row) -> float:
    """Return how many minutes the clock that this run of shop_clock read was ahead."""
    return float(told["result"]["at"] - told["started_at"].timestamp()) / 60


def test_a_worker_with_a_wrong_clock_begins_and_retries_runs_when_a_right_one_would(
    shop: Shop, wrong: dict[str, str], minutes: int
) -> None:
    [asked] = shop.sql("SELECT now() AS at")
    told = shop.ask("shop_clock")
    [later] = shop.ask_many("noop", [{}], run_at=asked["at"] + timedelta(minutes=30))
    [due] = shop.ask_many("noop", [{}], run_at=asked["at"] - timedelta(minutes=30))
    failing = shop.ask("shop_pack", ends="later")
    assert "claimed 3, succeeded 2, failed 1" in rowcall(wrong, "worker", "once").stdout
    [done] = shop.sql("SELECT now() AS at")
    assert minutes_ahead(shop.row(told)) == pytest.approx(minutes, abs=10)
    assert shop.row(later)["status"] == "queued"
    for run in (shop.row(told), shop.row(due)):
        assert asked["at"] < run["started_at"] < run["finished_at"] < done["at"]
    failed = shop.row(failing)
    assert asked["at"] < failed["failed_at"] < done["at"]
    assert failed["run_at"] - failed["failed_at"] == timedelta(hours=1)


def test_a_command_with_a_wrong_clock_reads_words_for_times_by_the_right_one(shop: Shop, wrong: dict[str, str]) -> None:
    assert rowcall(wrong, "enqueue", "noop", "--run-at", "in 10m").returncode == 0
    [run] = shop.sql("SELECT run_at - created_at AS ahead FROM rowcall.job_runs")
    assert timedelta(minutes=9) < run["ahead"] <= timedelta(minutes=10)


def test_a_worker_with_a_wrong_clock_ticks_by_the_right_one(shop: Shop, wrong: dict[str, str]) -> None:
    with database.transaction(shop.url) as connection:
        row = kept(connection, schedule=hourly_but_not_now(connection), catch_up="all")
        asleep_since(connection, row, "3 hours")
    assert "succeeded 3" in rowcall(wrong, "worker", "once").stdout
    [read] = shop.sql(
        "SELECT count(*) AS told, max(nominal_at) <= now() AND max(nominal_at) > now() - interval '1 hour' AS fits"
        " FROM rowcall.schedule_occurrences WHERE outcome = 'enqueued'"
    )
    assert (read["told"], read["fits"]) == (3, True)


def test_workers_with_right_and_wrong_clocks_respect_each_others_leases(
    shop: Shop, wrong: dict[str, str], minutes: int, tmp_path: Path
) -> None:
    rights = shop.ask("shop_wait", doors=str(tmp_path))
    with running(shop.environment, "worker", "run", "--concurrency", "1"):
        shop.wait_for_knock(rights)
        with running(wrong, "worker", "run"):
            wrongs = shop.ask("shop_wait", doors=str(tmp_path))
            kept = shop.wait(wrongs, "running")["locked_until"]
            wait_until(lambda: shop.row(wrongs)["locked_until"] > kept, "the lease is renewed")
            # Each looks for due runs, and skips the other's run.
            assert minutes_ahead(shop.wait(shop.ask("shop_clock"), "succeeded")) == pytest.approx(minutes, abs=10)
            assert rowcall(shop.environment, "worker", "once").stdout.startswith("claimed 0")
            assert shop.sql(
                "SELECT DISTINCT locked_until BETWEEN now() AND now() + interval '2 minutes' AS fit"
                " FROM rowcall.job_runs"
                " WHERE status = 'running'"
            ) == [{"fit": True}]
            # Both doors are in one folder, and both leases have number 1: one file opens both doors.
            shop.open_door(rights)
            for run_id in (rights, wrongs):
                run = shop.wait(run_id, "succeeded")
                assert (run["attempts"], run["lease_no"]) == (1, 1)
