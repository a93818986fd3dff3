"""A worker whose app has a thousand open files still listens, writes and starts child processes."""

from __future__ import annotations

import pytest

from tests.support.processes import running
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop({**environment, "SHOP_FILES_OPEN": "1100"}, fresh_url)


def test_a_worker_works_with_descriptors_beyond_the_first_thousand(shop: Shop) -> None:
    with running(shop.environment, "worker", "run", "--concurrency", "1") as worker:
        # The second run reuses the connection of the first one.
        for job_type in ("shop_book", "shop_book", "shop_isolated_book"):
            shop.wait(shop.ask(job_type), "succeeded")
        worker.terminate()
        said, _ = worker.communicate()
    assert worker.returncode == 0, said
