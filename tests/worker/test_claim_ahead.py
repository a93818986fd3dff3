"""Claiming ahead in a whole worker: quick runs are claimed many at a time, slow ones only for a free thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall import queue
from rowcall.base import database
from tests.support.processes import running, wait_until
from tests.support.shop import Shop

QUICK = 2500
THREADS = 4


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def test_after_many_quick_runs_slow_ones_are_claimed_for_free_threads_only(shop: Shop, tmp_path: Path) -> None:
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(QUICK)], queue="packing")
    doors = [tmp_path / str(number) for number in range(250)]
    for door in doors:
        door.mkdir()
    slow = shop.ask_many("shop_wait", [{"doors": str(door)} for door in doors], queue="packing")
    with running(shop.environment, "worker", "run", "--concurrency", str(THREADS), "--grace", "0"):
        for run_id in slow[:THREADS]:
            shop.wait_for_knock(run_id)
        wait_until(lambda: shop.count("succeeded") == QUICK, "all quick runs have succeeded")
        assert shop.count("running") == THREADS
        with running(shop.environment, "worker", "run", "--concurrency", str(THREADS), "--grace", "0"):
            for run_id in slow[THREADS : 2 * THREADS]:
                shop.wait_for_knock(run_id)
            assert shop.count("running") == 2 * THREADS
