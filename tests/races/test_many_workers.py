"""Many workers at once: every run is handled once, and all are finished."""

from __future__ import annotations

import subprocess

import pytest

from shared import database, queue
from tests.processes import command, start, wait_until
from tests.shop import Shop

RUNS = 20_000
WORKERS = 8

BACKENDS = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'rowcall worker%%'
"""

ENDED = """
SELECT status, attempts, lease_no, payload = result AS answered, count(*) FROM job_runs GROUP BY 1, 2, 3, 4
"""


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.mark.parametrize("arguments", [["once"], ["once", "--concurrency", "1"]], ids=["ten threads", "one thread"])
def test_eight_workers_handle_twenty_thousand_runs_once_each(shop: Shop, arguments: list[str]) -> None:
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(RUNS)])
    workers = [start(shop.environment, "worker", *arguments) for _ in range(WORKERS)]
    for worker in workers:
        said, _ = worker.communicate()
        assert worker.returncode == 0, said
    assert shop.sql(ENDED) == [{"status": "succeeded", "attempts": 1, "lease_no": 1, "answered": True, "count": RUNS}]


def test_workers_killed_at_random_cost_attempts_and_never_a_run(shop: Shop) -> None:
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(RUNS)])
    for round_ in range(6):
        # What it says of a thousand leases that ran out would fill a pipe that nobody reads.
        worker = subprocess.Popen(
            command("worker", "once"), env=shop.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # Killed after some of its commits, the later the more: at whatever it is doing then.
        while worker.poll() is None:
            done = shop.sql("SELECT count(*) FROM job_runs WHERE status = 'succeeded'")[0]["count"]
            if done > round_ * 2_000:
                worker.kill()
                worker.wait()
        # The server may still be carrying out the dead worker's last claim.
        wait_until(lambda: not shop.sql(BACKENDS), "the killed worker's connections are gone")
        shop.sql("UPDATE job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'")
    last = start(shop.environment, "worker", "once")
    said, _ = last.communicate()
    assert last.returncode == 0, said
    assert shop.sql("SELECT status, payload = result AS answered, count(*) FROM job_runs GROUP BY 1, 2") == [
        {"status": "succeeded", "answered": True, "count": RUNS}
    ]
    [lost] = shop.sql("SELECT sum(attempts - 1)::int AS more FROM job_runs")
    [kept] = shop.sql("SELECT count(*)::int AS more FROM job_attempts WHERE outcome = 'expire'")
    assert lost["more"] == kept["more"]
