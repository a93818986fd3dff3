"""Runs that are handed over through a real Redis, which is killed in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.handover.parcels import Parcels, celery_worker
from tests.support.broker import redis
from tests.support.processes import rowcall, running, wait_until

pytestmark = pytest.mark.program("redis-server")


def test_runs_wait_for_a_redis_that_was_killed_and_each_is_performed_once(
    environment: dict[str, str], fresh_url: str, tmp_path: Path
) -> None:
    with redis() as broker:
        parcels = Parcels(environment, fresh_url, broker, tmp_path)
        with running(parcels.environment, "worker", "run"):
            first = parcels.send(order_id=1)
            parcels.wait_for_message(first)
            with celery_worker(parcels):
                parcels.wait(first, "succeeded")
                broker.kill()
                second = parcels.send(order_id=2)
                wait_until(lambda: parcels.unsuccessful(second) == ["snooze"], "the second run is put off")
                masked = broker.url.replace("//", "//:***@")
                told = rowcall(parcels.environment, "runs", "explain", str(second)).stdout
                assert f"the broker {masked} has not taken a message for queue parcels" in told
                assert (parcels.row(second)["status"], parcels.row(second)["attempts"]) == ("queued", 0)
                broker.start()
                assert parcels.wait(second, "succeeded")["attempts"] == 1
    assert parcels.labels() == [str(first), str(second)]
