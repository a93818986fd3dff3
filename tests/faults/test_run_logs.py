"""The logs of runs whose worker or child process is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rowcall import queue
from rowcall.base import database
from tests.support.processes import rowcall, running, start, wait_until
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.fixture
def worker(shop: Shop) -> Iterator[None]:
    """Let a worker that the test does not harm work for the shop; nobody reads what it prints."""
    shop.environment["ROWCALL_LOG_LEVEL"] = "error"
    with running(shop.environment, "worker", "run", "--grace", "0"):
        yield


def log_of(shop: Shop, run_id: int) -> list[tuple[int, str]]:
    """Return the lease and the text of each line."""
    with database.transaction(shop.url) as connection:
        return [(line["lease_no"], line["text"]) for line in queue.log_end(connection, run_id, 2000)]


def test_what_a_heartbeat_has_written_survives_the_worker_and_the_next_attempt_continues_it(shop: Shop) -> None:
    run_id = shop.ask("shop_slow")
    worker = start(shop.environment, "worker", "run")
    wait_until(lambda: log_of(shop, run_id), "a heartbeat has written the log")
    worker.kill()
    worker.communicate()
    shop.expire_leases()
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    assert shop.row(run_id)["status"] == "succeeded"
    assert log_of(shop, run_id) == [(1, "attempt 1"), (2, "attempt 2")]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("ends", ["segfault", "kill", "exit"])
def test_what_a_child_process_logged_outlives_it(shop: Shop, ends: str) -> None:
    [run_id] = shop.ask_many("shop_isolated", [{"ends": ends}], max_attempts=1)
    run = shop.wait(run_id, "dead")
    [(lease_no, text)] = log_of(shop, run_id)
    assert (lease_no, text.startswith("this is process ")) == (1, True)
    assert "this is process" not in str(run["last_stack"])


@pytest.mark.usefixtures("worker")
def test_what_a_child_process_logged_outlives_its_time_limit(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated_limited")
    assert shop.wait(run_id, "failed")["error_type"] == "TimeLimitExceeded"
    [(_, text)] = log_of(shop, run_id)
    assert int(text.removeprefix("this is process ")) != os.getpid()


@pytest.mark.usefixtures("worker")
def test_the_log_of_a_child_process_commits_with_its_own_transaction(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated_book", order_id=7)
    shop.wait(run_id, "succeeded")
    assert log_of(shop, run_id) == [(1, "booking order 7")]


@pytest.mark.usefixtures("worker")
def test_a_child_process_that_logs_very_much_keeps_its_newest_lines(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="loud")
    shop.wait(run_id, "succeeded")
    texts = [text.split()[1] for _, text in log_of(shop, run_id)]
    assert texts == [str(step) for step in range(1000, 2000)]
