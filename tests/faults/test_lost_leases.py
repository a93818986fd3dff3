"""Workers that die, freeze or are overruled: the run goes on elsewhere, and nothing they do later counts."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest

from shared import database, queue
from shared.queue.operate import Admin
from tests.processes import rowcall, start, wait_until
from tests.shop import Shop

RUN_OUT = "UPDATE job_runs SET locked_until = now() - interval '1 second' WHERE id = %(run_id)s"


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    return Shop(environment, worker_url)


@pytest.fixture
def worker(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    worker = start(shop.environment, "worker", "run", "--grace", "0")
    yield worker
    worker.kill()
    worker.communicate()


def test_a_killed_workers_run_is_taken_over_when_its_lease_has_run_out(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    worker.kill()
    worker.wait()
    assert "claimed 0" in rowcall(shop.environment, "worker", "once").stdout
    shop.sql(RUN_OUT, run_id=run_id)
    assert "claimed 1, succeeded 1" in rowcall(shop.environment, "worker", "once").stdout
    run = shop.row(run_id)
    assert (run["attempts"], run["lease_no"], run["result"]) == (2, 2, {"attempt": 2})


def test_a_frozen_worker_wakes_to_a_lost_lease_and_writes_nothing(shop: Shop, worker: subprocess.Popen[str]) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    worker.send_signal(signal.SIGSTOP)
    shop.sql(RUN_OUT, run_id=run_id)
    assert "succeeded 1" in rowcall(shop.environment, "worker", "once").stdout
    taken_over = shop.row(run_id)
    worker.send_signal(signal.SIGCONT)
    said = ""
    assert worker.stdout is not None
    while '"lease lost"' not in said:
        said += worker.stdout.readline()
    assert shop.row(run_id) == taken_over


def test_a_lease_is_kept_for_as_long_as_the_handler_works(shop: Shop, worker: subprocess.Popen[str]) -> None:
    run_id = shop.ask("shop_slow")
    first = shop.wait(run_id, "running")["locked_until"]
    wait_until(lambda: shop.row(run_id)["locked_until"] > first, "the lease was renewed")
    wait_until(lambda: shop.sql("SELECT id FROM workers WHERE heartbeat_at > started_at"), "the worker was heard of")


def test_an_admin_who_asks_to_cancel_is_obeyed_at_the_handlers_next_check(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    with database.transaction(shop.url) as connection:
        queue.ask_to_cancel(connection, run_id, Admin("a test"))
    run = shop.wait(run_id, "cancelled")
    assert run["locked_by"] is None


def test_what_a_handler_says_of_its_progress_can_be_seen_while_it_works(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    wait_until(lambda: (shop.row(run_id)["progress"] or {}).get("note", "").startswith("step "), "there is progress")


def test_a_handler_beyond_its_time_limit_is_fenced_out_and_its_place_is_taken(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    stuck = [shop.ask("shop_limited") for _ in range(12)]
    for run_id in stuck:
        assert shop.wait(run_id, "failed")["error_type"] == "TimeLimitExceeded"
    assert shop.wait(shop.ask("noop"), "succeeded")


def test_work_in_the_runs_own_transaction_is_committed_with_its_success(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run = shop.wait(shop.ask("shop_book", order_id=7), "succeeded")
    assert run["result"] == {"booked": 7}
    assert shop.sql("SELECT name FROM cache_entries WHERE name = 'booked:7'")


@pytest.mark.parametrize(("ends", "status"), [("badly", "failed"), ("late", "running")])
def test_work_in_the_runs_own_transaction_is_rolled_back_with_it(
    shop: Shop, worker: subprocess.Popen[str], ends: str, status: str
) -> None:
    run_id = shop.ask("shop_book", order_id=8, ends=ends)
    if ends == "badly":
        shop.wait(run_id, status)
    else:
        said = ""
        assert worker.stdout is not None
        while '"lease lost"' not in said:
            said += worker.stdout.readline()
    assert shop.row(run_id)["lease_no"] == shop.row(run_id)["attempts"]
    assert not shop.sql("SELECT name FROM cache_entries WHERE name = 'booked:8'")
