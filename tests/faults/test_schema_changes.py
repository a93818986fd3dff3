"""The schema is migrated back or removed while a worker runs: it says so and ends."""

from __future__ import annotations

import pytest

from tests.support.processes import LIMIT_SECONDS, read_until, rowcall, running
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.mark.parametrize("to", ["0001", "base"])
def test_a_worker_whose_schema_is_migrated_back_ends_with_a_sentence(shop: Shop, to: str) -> None:
    with running(shop.environment, "worker", "run", "--grace", "0") as worker:
        read_until(worker, "worker started")
        shop.wait_until_begun(shop.ask("shop_slow"))
        assert rowcall(shop.environment, "migrate", "--to", to, "--yes").returncode == 0
        said, _ = worker.communicate(timeout=LIMIT_SECONDS)
    assert "Traceback" not in said, said
    assert said.splitlines()[-1].startswith("rowcall: the database")
    assert "run `rowcall migrate`" in said
    assert worker.returncode == 1
