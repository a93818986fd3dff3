"""Workers that die, freeze or are overruled: the run continues elsewhere, and nothing they write later counts."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.support.gate import gate
from tests.support.processes import freeze, read_until, rowcall, running, wait_until
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    return Shop(environment, worker_url)


@pytest.fixture
def worker(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    with running(shop.environment, "worker", "run", "--grace", "0") as worker:
        yield worker


@pytest.fixture
def silent(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    """Yield a worker with rare heartbeats: none can be in progress when a test back-dates the lease."""
    with running({**shop.environment, "ROWCALL_HEARTBEAT": "30"}, "worker", "run", "--grace", "0") as worker:
        yield worker


def test_a_killed_workers_run_is_taken_over_when_its_lease_has_expired(
    shop: Shop, silent: subprocess.Popen[str]
) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    silent.kill()
    silent.wait()
    assert "claimed 0" in rowcall(shop.environment, "worker", "once").stdout
    shop.expire_leases()
    assert "claimed 1, succeeded 1" in rowcall(shop.environment, "worker", "once").stdout
    run = shop.row(run_id)
    assert (run["attempts"], run["lease_no"], run["result"]) == (2, 2, {"attempt": 2})


@pytest.mark.parametrize("ends", ["well", "badly at first"], ids=["success", "failure"])
def test_a_frozen_worker_wakes_to_a_lost_lease_and_its_end_of_the_run_is_refused(
    shop: Shop, silent: subprocess.Popen[str], tmp_path: Path, ends: str
) -> None:
    run_id = shop.ask("shop_wait", doors=str(tmp_path), ends=ends)
    shop.wait_for_knock(run_id)
    freeze(silent)
    shop.expire_leases()
    shop.open_door(run_id, lease_no=2)
    assert "succeeded 1" in rowcall(shop.environment, "worker", "once").stdout
    taken_over = shop.row(run_id)
    assert taken_over["result"] == {"packed": 1, "attempt": 2}
    shop.open_door(run_id)
    silent.send_signal(signal.SIGCONT)
    read_until(silent, "lease lost")
    silent.terminate()
    silent.communicate()
    assert silent.returncode == 0
    assert shop.row(run_id) == taken_over
    assert shop.unsuccessful(run_id) == ["expire"]


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)  # the gate's lock belongs to a session
def test_a_worker_that_was_frozen_between_claim_and_handler_does_not_begin_what_is_no_longer_its_own(
    shop: Shop, tmp_path: Path
) -> None:
    # A lease this short can end during the test; the worker itself must notice that.
    soon = {**shop.environment, "ROWCALL_LEASE": "1"}
    run_id = shop.ask("shop_wait", doors=str(tmp_path))
    with gate(shop.url) as barred:
        barred.hold_change("NEW.status = 'running'")
        with running(soon, "worker", "run", "--grace", "0") as frozen:
            barred.wait()
            freeze(frozen)
            barred.open()
            wait_until(
                lambda: shop.sql("SELECT id FROM rowcall.job_runs WHERE locked_until < now()"),
                "the frozen worker's lease has ended",
            )
            shop.open_door(run_id, lease_no=2)
            assert "succeeded 1" in rowcall(shop.environment, "worker", "once").stdout
            frozen.send_signal(signal.SIGCONT)
            read_until(frozen, "lease lost")
    assert not (tmp_path / "1 knocked").exists()
    assert shop.row(run_id)["result"] == {"packed": 1, "attempt": 2}


def test_a_failure_from_before_cancel_and_retry_ends_nothing_of_the_runs_new_life_in_the_same_worker(
    shop: Shop, silent: subprocess.Popen[str], tmp_path: Path
) -> None:
    run_id = shop.ask("shop_wait", doors=str(tmp_path), ends="badly at first")
    shop.wait_for_knock(run_id)
    before = shop.row(run_id)
    with database.transaction(shop.url) as connection:
        queue.force_cancel(connection, run_id, 1, Operator("a test"))
        queue.retry(connection, run_id, Operator("a test"))
    shop.wait_for_knock(run_id, lease_no=2)
    now = shop.row(run_id)
    # Only the lease number has changed.
    assert (now["locked_by"], now["attempts"], now["lease_no"]) == (before["locked_by"], 1, 2)
    shop.open_door(run_id)
    read_until(silent, "lease lost")
    assert shop.row(run_id)["status"] == "running"
    shop.open_door(run_id, lease_no=2)
    run = shop.wait(run_id, "succeeded")
    assert (run["attempts"], run["lease_no"], run["result"]) == (1, 2, {"packed": 1, "attempt": 1})
    assert shop.unsuccessful(run_id) == ["force cancel"]


def test_a_lease_is_kept_for_as_long_as_the_handler_works(shop: Shop, worker: subprocess.Popen[str]) -> None:
    run_id = shop.ask("shop_slow")
    first = shop.wait(run_id, "running")["locked_until"]
    wait_until(lambda: shop.row(run_id)["locked_until"] > first, "the lease was renewed")
    wait_until(
        lambda: shop.sql("SELECT id FROM rowcall.workers WHERE heartbeat_at > started_at"), "the worker was heard of"
    )


def test_an_operator_who_asks_to_cancel_is_obeyed_at_the_handlers_next_check(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    with database.transaction(shop.url) as connection:
        queue.ask_to_cancel(connection, run_id, Operator("a test"))
    run = shop.wait(run_id, "cancelled")
    assert run["locked_by"] is None


def test_what_a_handler_says_of_its_progress_can_be_seen_while_it_works(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run_id = shop.ask("shop_slow")
    shop.wait(run_id, "running")
    wait_until(lambda: (shop.row(run_id)["progress"] or {}).get("note", "").startswith("step "), "there is progress")


def test_a_handler_beyond_its_time_limit_is_fenced_out_and_its_place_is_taken(shop: Shop, tmp_path: Path) -> None:
    with running(shop.environment, "worker", "run", "--grace", "0", "--concurrency", "2"):
        assert shop.wait(shop.ask("shop_limited"), "failed")["error_type"] == "TimeLimitExceeded"
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
        both = [shop.ask("shop_wait", doors=str(tmp_path / name)) for name in ("one", "other")]
        for run_id in both:
            shop.wait_for_knock(run_id)
        for run_id in both:
            shop.open_door(run_id)


def test_a_worker_with_as_many_stuck_threads_as_places_ends_in_order_to_be_started_again(shop: Shop) -> None:
    stuck = [shop.ask("shop_limited") for _ in range(2)]
    ended = rowcall(shop.environment, "worker", "run", "--grace", "0", "--concurrency", "2")
    assert ended.returncode == 1
    assert "2 handlers are stuck beyond their time limits" in ended.stderr
    assert '"worker stopped"' in ended.stderr
    for run_id in stuck:
        assert shop.row(run_id)["error_type"] == "TimeLimitExceeded"


def test_work_in_the_runs_own_transaction_is_committed_with_its_success(
    shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run = shop.wait(shop.ask("shop_book", order_id=7), "succeeded")
    assert run["result"] == {"booked": 7}
    assert shop.sql("SELECT order_id FROM bookings WHERE order_id = 7")


@pytest.mark.parametrize(("ends", "status"), [("badly", "failed"), ("late", "running")])
def test_work_in_the_runs_own_transaction_is_rolled_back_with_it(
    shop: Shop, worker: subprocess.Popen[str], ends: str, status: str
) -> None:
    run_id = shop.ask("shop_book", order_id=8, ends=ends)
    if ends == "badly":
        shop.wait(run_id, status)
    else:
        read_until(worker, "lease lost")
    run = shop.row(run_id)
    assert (run["attempts"], run["lease_no"]) == (1, 1)
    assert not shop.sql("SELECT order_id FROM bookings WHERE order_id = 8")


def close_by_pausing(shop: Shop) -> None:
    with database.transaction(shop.url) as connection:
        queue.pause_queue(connection, "packing", Operator("a test"))


def close_by_limiting(shop: Shop) -> None:
    with database.transaction(shop.url) as connection:
        queue.limit_queue(connection, "packing", 0, Operator("a test"))


@pytest.mark.parametrize("close", [close_by_pausing, close_by_limiting], ids=["paused", "limited"])
def test_a_killed_workers_run_does_not_stay_running_in_a_queue_that_was_closed_after_its_claim(
    shop: Shop, silent: subprocess.Popen[str], close: Callable[[Shop], None]
) -> None:
    [run_id] = shop.ask_many("shop_slow", [{}], queue="packing")
    shop.wait(run_id, "running")
    silent.kill()
    silent.wait()
    close(shop)
    with running(shop.environment, "worker", "run"):
        shop.wait_for_workers(2)
        shop.expire_leases()
        run = shop.wait(run_id, "failed")
    assert (run["error_type"], run["attempts"]) == ("LeaseExpired", 1)
