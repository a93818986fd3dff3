"""Every run that a sleeping worker serves wakes it, whatever the enqueuer was doing when the worker fell asleep."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import fetch_all
from tests.support.processes import running, wait_until
from tests.support.shop import Shop

ASLEEP = "SELECT id FROM rowcall.workers WHERE sleeps_until > now()"


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    shop = Shop(environment, fresh_url)
    # Much longer than a test waits, so that polling finds nothing.
    shop.environment["ROWCALL_POLL"] = "3600"
    return shop


def wait_until_asleep(shop: Shop) -> None:
    wait_until(lambda: shop.sql(ASLEEP), "the worker sleeps")


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_an_enqueuer_that_saw_nobody_asleep_and_commits_late_is_not_missed(shop: Shop, isolation: str) -> None:
    with database.transaction(shop.url) as connection:
        fetch_all(connection, f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        first = queue.enqueue(connection, "noop", {}).run_id
        with running(shop.environment, "worker", "run"):
            wait_until_asleep(shop)
            connection.commit()
            shop.wait(first, "succeeded")


def test_each_run_for_a_sleeping_worker_wakes_it(shop: Shop) -> None:
    with running(shop.environment, "worker", "run"):
        for _ in range(5):
            wait_until_asleep(shop)
            with database.transaction(shop.url) as connection:
                run_id = queue.enqueue(connection, "noop", {}).run_id
            shop.wait(run_id, "succeeded")


def test_a_worker_with_something_in_hand_and_room_for_more_sleeps_too(shop: Shop, tmp_path: Path) -> None:
    with running(shop.environment, "worker", "run", "--concurrency", "2"):
        wait_until_asleep(shop)
        with database.transaction(shop.url) as connection:
            held = shop.ask("shop_wait", doors=str(tmp_path))
            queue.enqueue(connection, "noop", {})
        shop.wait_for_knock(held)
        wait_until_asleep(shop)
        with database.transaction(shop.url) as connection:
            run_id = queue.enqueue(connection, "noop", {}).run_id
        shop.wait(run_id, "succeeded")
        shop.open_door(held)


def test_one_takes_the_place_that_another_workers_run_leaves_under_a_limit(shop: Shop, tmp_path: Path) -> None:
    with database.transaction(shop.url) as connection:
        queue.limit_queue(connection, "narrow", 1, Operator("test"))
    [held] = shop.ask_many("shop_wait", [{"doors": str(tmp_path)}], queue="narrow")
    with running(shop.environment, "worker", "run", "--types", "shop_wait"):
        shop.wait_for_knock(held)
        with running(shop.environment, "worker", "run", "--types", "noop"):
            wait_until_asleep(shop)
            with database.transaction(shop.url) as connection:
                run_id = queue.enqueue(connection, "noop", {}, queue="narrow").run_id
            shop.open_door(held)
            shop.wait(run_id, "succeeded")


def enqueue_unseen(shop: Shop) -> int:
    """Enqueue a run without a notification, because no worker is registered as asleep."""
    assert not shop.sql(ASLEEP)
    with database.transaction(shop.url) as connection:
        return queue.enqueue(connection, "noop", {}).run_id


def test_one_whose_row_was_deleted_finds_what_came_meanwhile_and_sleeps_again(shop: Shop) -> None:
    with running(shop.environment, "worker", "run"):
        wait_until_asleep(shop)
        shop.sql("DELETE FROM rowcall.workers RETURNING id")
        shop.wait(enqueue_unseen(shop), "succeeded")
        wait_until_asleep(shop)


def test_one_that_was_frozen_for_so_long_that_nobody_told_it_finds_what_came_meanwhile(shop: Shop) -> None:
    with running(shop.environment, "worker", "run") as worker:
        wait_until_asleep(shop)
        worker.send_signal(signal.SIGSTOP)
        shop.sql("UPDATE rowcall.workers SET sleeps_until = now() - interval '1 second'")
        run_id = enqueue_unseen(shop)
        worker.send_signal(signal.SIGCONT)
        shop.wait(run_id, "succeeded")


def test_a_worker_that_ends_sleeps_no_longer(shop: Shop) -> None:
    with running(shop.environment, "worker", "run") as worker:
        wait_until_asleep(shop)
        worker.terminate()
        worker.communicate()
    assert not shop.sql(ASLEEP)
