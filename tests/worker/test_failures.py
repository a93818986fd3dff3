"""Workers count failed attempts, beside their ticks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.processes import rowcall
from tests.support.shop import Shop

COUNTS = "SELECT job_type, queue, error_type, failures, run_id FROM rowcall.failure_counts"


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    """Return the shop, on a database for this test."""
    return Shop(environment, worker_url)


def counts_after_a_minute(shop: Shop) -> list[dict[str, Any]]:
    """Move what has happened into the past, let cron start the next worker, and return what is counted."""
    shop.sql("UPDATE rowcall.job_attempts SET ended_at = ended_at - interval '1 minute'")
    shop.sql("UPDATE rowcall.schedule_ticks SET ticked_at = ticked_at - interval '1 minute'")
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    return shop.sql(COUNTS)


def test_the_next_worker_counts_what_failed_and_what_a_lost_lease_ended(shop: Shop) -> None:
    failed = shop.ask_many("shop_pack", [{"ends": "badly"}], max_attempts=1)
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    [lost] = shop.ask_many("shop_pack", [{}], max_attempts=1, queue="packing")
    shop.sql(
        "UPDATE rowcall.job_runs SET status = 'running', attempts = 1, lease_no = 1, locked_by = 'gone',"
        " locked_until = now() - interval '1 minute' WHERE id = %(run_id)s",
        run_id=lost,
    )
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    counted = {row["run_id"]: row for row in counts_after_a_minute(shop)}
    assert counted.keys() == {*failed, lost}
    assert counted[lost]["error_type"] == "LeaseExpired"
    assert {row["failures"] for row in counted.values()} == {1}


def test_what_succeeds_is_not_counted(shop: Shop) -> None:
    shop.ask("shop_pack")
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    assert counts_after_a_minute(shop) == []
