"""Limits with many workers: never more than allowed at a time, and nothing is left over."""

from __future__ import annotations

import signal

import pytest

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.queue import limit_queue
from tests.support.processes import begin, rowcall, wait_until
from tests.support.shop import Shop

RUNS = 60
WORKERS = 4
RUNNING = "SELECT count(*) FROM rowcall.job_runs WHERE queue = %(queue)s AND status = 'running'"
LIVE = "SELECT count(*) FROM rowcall.job_runs WHERE finished_at IS NULL"


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    return Shop(environment, worker_url)


def most_at_a_time(shop: Shop, queue: str) -> int:
    """Let many workers empty the queue, and return the maximum that was seen running together."""
    workers = [begin(shop.environment, "worker", "once") for _ in range(WORKERS)]
    most = 0
    with database.transaction(shop.url) as connection:
        connection.autocommit = True
        while any(worker.poll() is None for worker in workers):
            most = max(most, database.fetch_value(connection, RUNNING, {"queue": queue}))
    for worker in workers:
        said, _ = worker.communicate()
        assert worker.returncode == 0, said
    # A `once` that found no free place has ended; one that had a place went on until nothing was left.
    assert shop.sql(LIVE) == [{"count": 0}]
    return most


def test_a_types_limit_holds_over_all_workers(shop: Shop) -> None:
    for _ in range(RUNS):
        shop.ask("shop_narrow")
    shop.sql("UPDATE rowcall.job_runs SET queue = 'narrow'")
    assert most_at_a_time(shop, "narrow") == 2


def test_a_queues_limit_holds_over_all_workers(shop: Shop) -> None:
    with database.transaction(shop.url) as connection:
        limit_queue(connection, "default", 3, Operator("a test"))
    for _ in range(RUNS):
        shop.ask("shop_narrow")
    assert most_at_a_time(shop, "default") == 3


AT_WORK = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
"""


def test_the_places_of_killed_workers_come_free(shop: Shop) -> None:
    for _ in range(RUNS):
        shop.ask("shop_narrow")
    shop.sql("UPDATE rowcall.job_runs SET queue = 'narrow'")
    for _ in range(3):
        worker = begin(shop.environment, "worker", "run")
        while not shop.sql(RUNNING, queue="narrow")[0]["count"]:
            assert worker.poll() is None
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        # A claim in progress when its worker died may still be executed, under a new lease.
        wait_until(lambda: not shop.sql(AT_WORK), "the server has done what the killed worker asked for")
        shop.sql("UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'")
    assert most_at_a_time(shop, "narrow") == 2


def test_a_run_of_a_limited_type_is_refused_in_another_queue(shop: Shop) -> None:
    refused = rowcall(shop.environment, "enqueue", "shop_narrow", '{"order_id": 1}', "--queue", "wide")
    assert refused.returncode == 1
    assert "queue: must be narrow: the max_running of shop_narrow applies to that queue" in refused.stderr
