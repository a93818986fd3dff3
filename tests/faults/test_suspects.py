"""A run that kills its worker takes no other run with it, and no other run waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from rowcall.base import database
from tests.support.processes import rowcall, running, wait_until
from tests.support.shop import Shop

# Pairs of runs that one worker had at the same time.
TOGETHER = """
SELECT one.id FROM rowcall.job_runs AS one JOIN rowcall.job_runs AS other ON one.id <> other.id
    AND one.started_at < other.finished_at AND other.started_at < one.finished_at
WHERE one.id = ANY(%(ids)s) AND other.id = ANY(%(others)s)
"""


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def together(shop: Shop, ids: Sequence[int], others: Sequence[int]) -> list[int]:
    return [row["id"] for row in shop.sql(TOGETHER, ids=ids, others=others)]


def everybody(shop: Shop) -> list[int]:
    return [row["id"] for row in shop.sql("SELECT id FROM rowcall.job_runs")]


def work_until_nothing_is_left(shop: Shop) -> int:
    """Restart killed workers as a service manager does, and let their leases expire; return how many were killed."""
    for killed in range(20):
        if rowcall(shop.environment, "worker", "once", "--concurrency", "10").returncode == 0:
            return killed
        shop.wait_for_the_server()
        shop.expire_leases()
    raise AssertionError("workers are still being killed")


def test_a_run_that_kills_each_of_its_workers_costs_no_other_run_more_than_one_attempt(shop: Shop) -> None:
    innocent = shop.ask_many("shop_narrow", [{}] * 5, max_attempts=2)
    poison = shop.ask_many("shop_pack", [{"ends": "with the worker"}], max_attempts=5)[0]
    innocent += shop.ask_many("shop_narrow", [{}] * 60, max_attempts=2)
    assert work_until_nothing_is_left(shop) == 5
    assert (shop.row(poison)["status"], shop.unsuccessful(poison)) == ("dead", ["expire"] * 5)
    assert {shop.row(run_id)["status"] for run_id in innocent} == {"succeeded"}
    # On its third attempt it ran alone.
    assert sum(len(shop.unsuccessful(run_id)) for run_id in innocent) <= 2 * 10


def test_one_worker_has_one_suspect_at_a_time_beside_its_other_runs(shop: Shop) -> None:
    suspects = shop.ask_many("shop_narrow", [{}] * 6, suspect=1)
    others = shop.ask_many("shop_narrow", [{}] * 40)
    rowcall(shop.environment, "worker", "once", "--concurrency", "4")
    assert shop.count("succeeded") == 46
    assert together(shop, suspects, suspects) == []
    assert together(shop, suspects, others)


def test_a_run_that_cost_two_leases_has_no_neighbours_while_it_runs(shop: Shop, tmp_path: Path) -> None:
    poison = shop.ask_many("shop_wait", [{"doors": str(tmp_path)}], suspect=2)[0]
    with running(shop.environment, "worker", "run"):
        shop.wait_for_knock(poison)
        other = shop.ask_many("noop", [{}])[0]
        beat = shop.row(poison)["locked_until"]
        wait_until(lambda: shop.row(poison)["locked_until"] > beat, "the worker has looked again")
        assert shop.row(other)["status"] == "queued"
        shop.open_door(poison)
        shop.wait(other, "succeeded")
    assert together(shop, [poison], everybody(shop)) == []


def test_a_busy_worker_stands_still_for_a_run_that_cost_two_leases(shop: Shop) -> None:
    with running(shop.environment, "worker", "run", "--concurrency", "4"):
        shop.ask_many("shop_narrow", [{}] * 300)
        shop.wait_for_more(20)
        poison = shop.ask_many("shop_narrow", [{}], suspect=2)[0]
        finished_at = shop.wait(poison, "succeeded")["finished_at"]
        shop.wait_for_all(300)
    assert together(shop, [poison], everybody(shop)) == []
    assert shop.sql("SELECT id FROM rowcall.job_runs WHERE started_at > %(at)s", at=finished_at)


def test_a_worker_that_is_never_empty_goes_on_after_standing_still_in_vain(shop: Shop, tmp_path: Path) -> None:
    with running(shop.environment, "worker", "run", "--concurrency", "2"):
        long = shop.ask_many("shop_wait", [{"doors": str(tmp_path)}])[0]
        shop.wait_for_knock(long)
        poison = shop.ask_many("noop", [{}], suspect=2)[0]
        others = shop.ask_many("shop_narrow", [{}] * 100)
        shop.wait(others[-1], "succeeded")
        assert shop.row(poison)["status"] == "queued"
        shop.open_door(long)
        shop.wait(poison, "succeeded")


def test_once_takes_every_suspect_before_it_ends_and_no_more_than_its_limit(shop: Shop) -> None:
    shop.ask_many("shop_narrow", [{}] * 3, suspect=2)
    shop.ask_many("shop_narrow", [{}] * 3, suspect=1)
    rowcall(shop.environment, "worker", "once", "--limit", "2")
    assert shop.count("succeeded") == 2
    rowcall(shop.environment, "worker", "once")
    assert shop.count("succeeded") == 6


def test_one_that_somebody_has_locked_keeps_nobody_waiting(shop: Shop) -> None:
    poison = shop.ask_many("noop", [{}], suspect=2)[0]
    with database.transaction(shop.url) as session:
        database.fetch_all(session, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", {"id": poison})
        with running(shop.environment, "worker", "run"):
            others = shop.ask_many("shop_narrow", [{}] * 20)
            for run_id in others:
                shop.wait(run_id, "succeeded")
            later = shop.ask_many("noop", [{}])[0]
            shop.wait(later, "succeeded")
        assert rowcall(shop.environment, "worker", "once").returncode == 0
    assert shop.row(poison)["status"] == "queued"


def test_while_others_wait_one_alone_is_followed_by_twenty_times_as_long_of_these(shop: Shop) -> None:
    alone = shop.ask_many("shop_narrow", [{}] * 4, suspect=2)
    turns = "SELECT * FROM rowcall.job_runs WHERE id = ANY(%(alone)s) AND status = 'succeeded' ORDER BY started_at"
    with running(shop.environment, "worker", "run", "--concurrency", "4"):
        while len(had := shop.sql(turns, alone=alone)) < 2:
            others = shop.ask_many("shop_narrow", [{}] * 200)
            shop.wait(others[100], "succeeded")
    for one, following in pairwise(had):
        took = one["finished_at"] - one["started_at"]
        assert following["started_at"] - one["finished_at"] >= 20 * took


def test_a_worker_that_has_little_to_do_rests_too_as_soon_as_another_run_has_come(shop: Shop) -> None:
    alone = shop.ask_many("shop_narrow", [{}] * 6, suspect=2)
    with running(shop.environment, "worker", "run"):
        for _ in range(20):
            shop.wait(shop.ask("noop"), "succeeded")
    rows = shop.sql(
        "SELECT id, started_at, finished_at FROM rowcall.job_runs WHERE started_at > '-infinity' ORDER BY 2"
    )
    turns = [number for number, row in enumerate(rows) if row["id"] in alone]
    apart = [(rows[one], rows[two]) for one, two in pairwise(turns) if two > one + 1]
    assert apart or len(turns) == 1, "another run came in between"
    for one, following in apart:
        assert following["started_at"] - one["finished_at"] >= 20 * (one["finished_at"] - one["started_at"])


@pytest.mark.parametrize("leases", [1, 2])
def test_one_in_a_queue_that_is_always_full_has_its_turn_before_what_came_later(shop: Shop, leases: int) -> None:
    shop.environment["ROWCALL_POLL"] = "1"
    shop.sql("INSERT INTO rowcall.queues (name, max_running) VALUES ('narrow', 1)")
    with running(shop.environment, "worker", "run"):
        others = shop.ask_many("shop_narrow", [{}] * 200, queue="narrow")
        shop.wait_for_more(20)
        suspect = shop.ask_many("shop_narrow", [{}], queue="narrow", suspect=leases)[0]
        shop.sql("UPDATE rowcall.job_runs SET run_at = now() - interval '1 hour' WHERE suspect > 0")
        shop.wait(suspect, "succeeded")
        assert shop.row(others[-1])["status"] == "queued"


def test_one_that_has_lost_a_lease_and_then_fails_by_itself_meets_no_other_suspect(shop: Shop) -> None:
    innocent = shop.ask_many("shop_pack", [{"ends": "badly at first"}], suspect=1)[0]
    poison = shop.ask_many("shop_pack", [{"ends": "with the worker"}], suspect=1)[0]
    assert work_until_nothing_is_left(shop) == 3
    assert (shop.row(poison)["status"], shop.unsuccessful(poison)) == ("dead", ["expire"] * 3)
    assert shop.unsuccessful(innocent) == ["fail"]
