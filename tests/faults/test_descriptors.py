"""A worker whose handlers have left a thousand files open still listens, writes and starts children."""

from __future__ import annotations

import pytest

from tests.support.processes import running
from tests.support.shop import WORKERS_BACKENDS, Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def test_a_worker_works_on_with_descriptors_beyond_the_first_thousand(shop: Shop) -> None:
    with running(shop.environment, "worker", "run", "--concurrency", "1") as worker:
        hoarding = shop.ask("shop_pack", ends="with files open")
        assert shop.wait(hoarding, "succeeded")["result"]["last"] > 1024
        # What it connects and starts from now on has the high numbers.
        shop.sql(f"SELECT pg_terminate_backend(pid) FROM ({WORKERS_BACKENDS}) AS worker")
        for job_type in ("shop_book", "shop_isolated_book", "shop_book"):
            shop.wait(shop.ask(job_type), "succeeded")
        assert worker.poll() is None
