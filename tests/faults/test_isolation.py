"""Isolated runs: what would kill a worker costs one attempt, and no child outlives its lease."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.support.processes import freeze, gone, living_with, rowcall, start, wait_until
from tests.support.shop import Shop

Row = dict[str, Any]

MIB = 2**20


@pytest.fixture(scope="module")
def shop(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return a shop with a worker that its runs cannot harm."""
    shop = Shop({**os.environ, "ROWCALL_HOME": str(tmp_path_factory.mktemp("home"))}, module_url)
    worker = start(shop.environment, "worker", "run", "--grace", "0")
    yield shop
    unharmed = worker.poll() is None
    worker.terminate()
    said, _ = worker.communicate()
    assert unharmed, said


@pytest.fixture
def own_shop(environment: dict[str, str], fresh_url: str) -> Shop:
    """Return a shop without a worker; the test starts its own, and may harm it."""
    return Shop(environment, fresh_url)


@pytest.fixture
def worker(own_shop: Shop) -> Iterator[subprocess.Popen[str]]:
    worker = start(own_shop.environment, "worker", "run", "--grace", "0")
    yield worker
    worker.kill()
    worker.communicate()


def attempts(shop: Shop, run_id: int) -> list[Row]:
    return shop.sql("SELECT * FROM rowcall.job_attempts WHERE run_id = %(run_id)s ORDER BY lease_no", run_id=run_id)


def child_of(shop: Shop, run_id: int) -> int:
    """Return the pid of the run's child, as soon as the child has reported it."""
    wait_until(lambda: shop.row(run_id)["progress"], f"the child of run {run_id} has reported its pid")
    return int(shop.row(run_id)["progress"]["note"])


def came_to(run: Row) -> list[object]:
    """Return what was stored of an unsuccessful run, without its type's name, and when it is due again."""
    texts = [str(run[column]).replace(run["job_type"], "") for column in ("last_error", "error_type", "last_stack")]
    again = run["run_at"] - run["failed_at"] if run["status"] == "failed" else run["run_at"].year
    return [run["attempts"], again, *texts]


def processes(shop: Shop) -> dict[int, str]:
    """Return the living processes of the shop."""
    return living_with(f"ROWCALL_HOME={shop.environment['ROWCALL_HOME']}")


def fork_server_of(shop: Shop, child: int) -> int:
    """Return the process that forked the child."""
    [fork_server] = [
        pid
        for pid, command in processes(shop).items()
        if "rowcall_worker.isolation.fork_server" in command and pid != child
    ]
    return fork_server


def test_an_isolated_handlers_answer_is_the_runs_result(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated_pack", order_id=7), "succeeded")
    assert (run["result"], run["attempts"]) == ({"packed": 7, "attempt": 1}, 1)


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("badly", "dead"),
        ("for good", "dead"),
        ("later", "failed"),
        ("not yet", "queued"),
        ("exit", "dead"),
        ("unstorable", "dead"),
    ],
)
def test_whatever_a_handler_raises_comes_to_the_same_as_in_a_thread(shop: Shop, ends: str, status: str) -> None:
    runs = [shop.ask(job_type, ends=ends) for job_type in ("shop_pack", "shop_isolated_pack")]
    wait_until(lambda: all(attempts(shop, run_id) for run_id in runs), "both have been tried")
    in_thread, isolated = (shop.wait(run_id, status) for run_id in runs)
    assert came_to(isolated) == came_to(in_thread)
    assert attempts(shop, isolated["id"])[0]["forensics"]["exit_code"] == 0
    assert attempts(shop, in_thread["id"])[0]["forensics"] is None


@pytest.mark.parametrize(("ends", "name"), [("segfault", "SIGSEGV"), ("kill", "SIGKILL")])
def test_a_child_that_dies_by_a_signal_costs_an_attempt_and_harms_nobody_else(shop: Shop, ends: str, name: str) -> None:
    beside = shop.ask("shop_slow")
    run_id = shop.ask("shop_isolated", ends=ends)
    run = shop.wait(run_id, "dead")
    assert (run["attempts"], run["max_attempts"], run["error_type"]) == (3, 3, name)
    assert run["last_error"].startswith(f"the child process of run {run_id} was killed by {name}")
    tried = attempts(shop, run_id)
    assert [attempt["outcome"] for attempt in tried] == ["fail", "fail", "give up"]
    for attempt in tried:
        forensics = attempt["forensics"]
        assert forensics["signal"] == name
        assert forensics["peak_memory"] > MIB
        assert gone(int(forensics["last_progress"]["note"]))
        assert forensics["seconds"] >= 0
    assert shop.row(beside)["status"] == "running"
    assert shop.row(beside)["attempts"] == 1
    with database.transaction(shop.url) as connection:
        queue.ask_to_cancel(connection, beside, Operator("a test"))


def test_where_a_fatal_signal_struck_is_kept_as_the_stack(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated", ends="segfault"), "dead")
    assert "Segmentation fault" in run["last_stack"]
    assert "in _segfault" in run["last_stack"]


def test_a_child_that_exits_without_an_answer_is_a_failed_attempt(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated", ends="exit"), "dead")
    assert run["error_type"] == "Exit"
    assert "ended with exit code 3 and no result" in run["last_error"]
    assert [attempt["forensics"]["exit_code"] for attempt in attempts(shop, run["id"])] == [3, 3, 3]


def test_the_time_limit_kills(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated_limited"), "failed")
    assert (run["error_type"], run["attempts"]) == ("TimeLimitExceeded", 1)
    [attempt] = attempts(shop, run["id"])
    assert attempt["forensics"]["signal"] == "SIGKILL"
    assert gone(int(attempt["forensics"]["last_progress"]["note"]))


def test_the_memory_cap_holds_and_is_told(shop: Shop) -> None:
    within, beyond = shop.ask("shop_isolated_capped", order_id=64), shop.ask("shop_isolated_capped", order_id=512)
    assert shop.wait(within, "succeeded")["result"] == {"held": 64}
    run = shop.wait(beyond, "failed")
    assert run["error_type"] == "MemoryCapExceeded"
    assert "needed more memory than its cap of 256 MiB" in run["last_error"]
    assert "in capped" in run["last_stack"]
    assert attempts(shop, beyond)[0]["forensics"]["peak_memory"] < 256 * MIB


def test_what_a_child_says_of_its_progress_can_be_seen_while_it_works(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="work")
    child = child_of(shop, run_id)
    assert shop.row(run_id)["progress"] == {"share": 0.5, "note": str(child)}
    assert not gone(child)
    with database.transaction(shop.url) as connection:
        queue.ask_to_cancel(connection, run_id, Operator("a test"))


def test_an_operator_who_asks_to_cancel_is_obeyed_inside_the_child(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="work")
    child = child_of(shop, run_id)
    with database.transaction(shop.url) as connection:
        queue.ask_to_cancel(connection, run_id, Operator("a test"))
    shop.wait(run_id, "cancelled")
    assert gone(child)


def test_a_child_that_was_cancelled_by_force_is_killed(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="hang")
    child = child_of(shop, run_id)
    with database.transaction(shop.url) as connection:
        queue.force_cancel(connection, run_id, 1, Operator("a test"))
    wait_until(lambda: gone(child), "the child is gone")
    assert [attempt["outcome"] for attempt in attempts(shop, run_id)] == ["force cancel"]


def test_a_child_whose_lease_is_lost_is_killed_and_nothing_is_written(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="hang")
    child = child_of(shop, run_id)
    shop.sql("UPDATE rowcall.job_runs SET lease_no = 2, locked_by = 'another' WHERE id = %(run_id)s", run_id=run_id)
    another = shop.row(run_id)
    wait_until(lambda: gone(child), "the child is gone")
    # After this run, the worker has also dropped the outcome of the old lease.
    shop.wait(shop.ask("shop_isolated_pack"), "succeeded")
    assert shop.row(run_id) == another
    assert not attempts(shop, run_id)


def test_work_in_the_runs_own_transaction_is_committed_with_its_success(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated_book", order_id=7), "succeeded")
    assert run["result"] == {"booked": 7}
    assert shop.sql("SELECT order_id FROM bookings WHERE order_id = 7")


def test_work_in_a_transaction_that_the_child_does_not_live_to_commit_is_rolled_back(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated_book", order_id=8, ends="killed"), "failed")
    assert run["error_type"] == "SIGKILL"
    assert not shop.sql("SELECT order_id FROM bookings WHERE order_id = 8")


def test_what_a_child_has_started_ends_with_it(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated", ends="leave a program"), "succeeded")
    wait_until(lambda: gone(run["result"]["left"]), "the program is gone")


def test_many_words_and_a_large_answer_arrive_whole(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated", ends="noise"), "succeeded")
    assert len(run["result"]["noise"]) == 60_000


def test_show_tells_how_the_child_of_each_attempt_ended(shop: Shop) -> None:
    run = shop.wait(shop.ask("shop_isolated", ends="exit"), "dead")
    assert '"exit_code": 3' in rowcall(shop.environment, "runs", "show", str(run["id"])).stdout


def test_a_signal_to_all_processes_ends_no_child_before_the_worker_does(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="work")
    child = child_of(shop, run_id)
    for pid in {fork_server_of(shop, child), child}:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    with database.transaction(shop.url) as connection:
        queue.ask_to_cancel(connection, run_id, Operator("a test"))
    assert shop.wait(run_id, "cancelled")["attempts"] == 1
    assert gone(child)


def test_when_the_fork_server_dies_its_attempts_fail_and_the_next_ones_have_another(shop: Shop) -> None:
    run_id = shop.ask("shop_isolated", ends="hang")
    child = child_of(shop, run_id)
    os.kill(fork_server_of(shop, child), signal.SIGKILL)
    assert shop.wait(run_id, "succeeded")["attempts"] == 2
    assert attempts(shop, run_id)[0]["error_type"] == "NoChild"
    assert gone(child)


def test_a_killed_worker_leaves_no_child_behind(own_shop: Shop, worker: subprocess.Popen[str]) -> None:
    child = child_of(own_shop, own_shop.ask("shop_isolated", ends="hang"))
    worker.kill()
    wait_until(lambda: gone(child), "the child is gone")
    worker.wait()
    wait_until(lambda: not processes(own_shop), "the worker has no processes left")


def test_the_child_of_a_frozen_worker_is_ended_with_its_lease(own_shop: Shop, worker: subprocess.Popen[str]) -> None:
    run_id = own_shop.ask("shop_isolated_short")
    child = child_of(own_shop, run_id)
    freeze(worker)
    wait_until(lambda: gone(child), "the child is gone")
    worker.send_signal(signal.SIGCONT)
    assert own_shop.wait(run_id, "succeeded")["attempts"] > 1


def test_a_worker_that_stops_ends_the_child_before_it_gives_the_run_back(
    own_shop: Shop, worker: subprocess.Popen[str]
) -> None:
    run_id = own_shop.ask("shop_isolated", ends="hang")
    child = child_of(own_shop, run_id)
    worker.terminate()
    assert own_shop.wait(run_id, "queued")["attempts"] == 1
    assert gone(child)
    [attempt] = attempts(own_shop, run_id)
    assert (attempt["outcome"], attempt["forensics"]["signal"]) == ("release", "SIGKILL")
    worker.wait()
    assert not processes(own_shop)


def test_a_worker_that_drains_and_goes_leaves_no_process_behind(own_shop: Shop) -> None:
    runs = [own_shop.ask("shop_isolated_pack", order_id=number) for number in range(20)]
    assert "claimed 20, succeeded 20" in rowcall(own_shop.environment, "worker", "once").stdout
    assert [own_shop.row(run_id)["result"]["packed"] for run_id in runs] == list(range(20))
    assert not processes(own_shop)
