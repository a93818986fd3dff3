"""Many workers at once: every run is handled once, and all are finished."""

from __future__ import annotations

import subprocess

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.child_processes import own_command
from tests.support.processes import begin
from tests.support.shop import Shop

RUNS = 20_000
WORKERS = 8

WAVES = 3
WAVE = 10
SHIPMENTS = 60

# The lease number is higher if a run was claimed ahead and unclaimed.
ENDED = """
SELECT status, attempts, payload = result AS answered, count(*) FROM rowcall.job_runs GROUP BY 1, 2, 3
"""


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.mark.parametrize("arguments", [["once"], ["once", "--concurrency", "1"]], ids=["ten threads", "one thread"])
def test_eight_workers_handle_twenty_thousand_runs_once_each(shop: Shop, arguments: list[str]) -> None:
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(RUNS)])
    workers = [begin(shop.environment, "worker", *arguments, "--max-time", "600") for _ in range(WORKERS)]
    for worker in workers:
        said, _ = worker.communicate()
        assert worker.returncode == 0, said
    assert shop.sql(ENDED) == [{"status": "succeeded", "attempts": 1, "answered": True, "count": RUNS}]


def test_once_started_ten_at_a_time_again_and_again_while_the_work_grows_does_each_run_once(shop: Shop) -> None:
    workers = []
    for wave in range(WAVES):
        shop.ask_many("shop_ship", [{"order_id": wave * SHIPMENTS + n} for n in range(SHIPMENTS)])
        shop.ask_many("noop", [{}] * SHIPMENTS)
        workers += [begin(shop.environment, "worker", "once", "--max-time", "600") for _ in range(WAVE)]
        # The next ten start when the first of these works.
        shop.wait_for_workers(wave * WAVE + 1)
    for worker in workers:
        said, _ = worker.communicate()
        assert worker.returncode == 0, said
    assert shop.sql("SELECT status, attempts, count(*) FROM rowcall.job_runs GROUP BY 1, 2") == [
        {"status": "succeeded", "attempts": 1, "count": 2 * WAVES * SHIPMENTS}
    ]
    assert shop.sql("SELECT count(*), count(DISTINCT order_id) AS orders FROM shipments") == [
        {"count": WAVES * SHIPMENTS, "orders": WAVES * SHIPMENTS}
    ]


KILLS = 5


def test_workers_killed_at_random_cost_attempts_and_never_a_run(shop: Shop) -> None:
    count = 10_000
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(count)])
    for kill in range(KILLS):
        # The log of a thousand expired leases would fill a pipe that nobody reads.
        worker = subprocess.Popen(
            own_command("worker", "once"), env=shop.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # Kill it after some of its commits, each time later, whatever it is doing.
        while worker.poll() is None:
            if shop.count("succeeded") > kill * 1_500:
                worker.kill()
                worker.wait()
        shop.wait_for_the_server()
        shop.expire_leases()
    last = begin(shop.environment, "worker", "once")
    said, _ = last.communicate()
    assert last.returncode == 0, said
    assert shop.sql("SELECT status, payload = result AS answered, count(*) FROM rowcall.job_runs GROUP BY 1, 2") == [
        {"status": "succeeded", "answered": True, "count": count}
    ]
    [lost] = shop.sql("SELECT sum(attempts - 1)::int AS more FROM rowcall.job_runs")
    [kept] = shop.sql("SELECT count(*)::int AS more FROM rowcall.job_attempts WHERE outcome = 'expire'")
    assert lost["more"] == kept["more"]
