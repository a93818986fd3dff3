"""A session of psql, or a handler, locks the row of one running run: only that run waits, and it is not lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rowcall.base import database
from tests.support.processes import read_until, rowcall, running, wait_until
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.fixture
def worker(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    with running(shop.environment, "worker", "run", "--grace", "0", "--concurrency", "4") as worker:
        yield worker


@contextmanager
def locked(shop: Shop, run_id: int, table: str = "job_runs") -> Iterator[None]:
    """Lock a row, as a forgotten session of psql does."""
    with database.transaction(shop.url) as session:
        database.fetch_all(session, f"SELECT FROM rowcall.{table} WHERE id = %(id)s FOR UPDATE", {"id": run_id})
        yield


def begun(shop: Shop, doors: Path, number: int, ends: str = "well") -> list[int]:
    """Start this many runs, whose handlers wait at their doors."""
    runs = []
    for order in range(number):
        (doors / str(order)).mkdir()
        runs.append(shop.ask("shop_wait", doors=str(doors / str(order)), ends=ends))
    for run_id in runs:
        shop.wait_for_knock(run_id)
    return runs


def wait_for_renewal(shop: Shop, run_id: int, times: int = 2) -> None:
    for _ in range(times):
        before = shop.row(run_id)["locked_until"]
        wait_until(lambda before=before: shop.row(run_id)["locked_until"] > before, "the lease is renewed")  # type: ignore[misc]


def test_the_neighbours_of_a_locked_run_keep_their_leases_and_it_gets_its_own_back(
    shop: Shop, worker: subprocess.Popen[str], tmp_path: Path
) -> None:
    one, other = begun(shop, tmp_path, 2)
    with locked(shop, one):
        wait_for_renewal(shop, other)
        limited = shop.ask("shop_limited")
        assert shop.wait(limited, "failed")["error_type"] == "TimeLimitExceeded"
        unchanged = shop.row(one)["locked_until"]
        wait_for_renewal(shop, other)
        assert shop.row(one)["locked_until"] == unchanged
    wait_for_renewal(shop, one)
    for run_id in (one, other):
        shop.open_door(run_id)
        assert shop.wait(run_id, "succeeded")["lease_no"] == 1


@pytest.mark.parametrize(("ends", "status"), [("well", "succeeded"), ("for good", "dead")])
def test_the_end_of_a_locked_run_is_kept_until_it_can_be_written_and_others_do_not_wait_for_it(
    shop: Shop, worker: subprocess.Popen[str], tmp_path: Path, ends: str, status: str
) -> None:
    one, *others = begun(shop, tmp_path, 4, ends)
    with locked(shop, one):
        for run_id in (one, *others):
            shop.open_door(run_id)
        for other in others:
            shop.wait(other, status)
        for more in shop.ask_many("noop", [{}] * 20):
            shop.wait(more, "succeeded")
        assert shop.row(one)["status"] == "running"
    run = shop.wait(one, status)
    assert (run["lease_no"], run["attempts"]) == (1, 1)
    worker.terminate()
    said, _ = worker.communicate()
    assert "lease lost" not in said
    assert "database lost" not in said


def test_ended_runs_that_are_locked_leave_room_for_others(
    shop: Shop, worker: subprocess.Popen[str], tmp_path: Path
) -> None:
    runs = begun(shop, tmp_path, 4)
    with ExitStack() as sessions:
        for run_id in runs:
            sessions.enter_context(locked(shop, run_id))
            shop.open_door(run_id)
        shop.wait(shop.ask("noop"), "succeeded")
        assert shop.count("running") == 4
    for run_id in runs:
        assert shop.wait(run_id, "succeeded")["lease_no"] == 1


def test_progress_of_a_locked_run_holds_up_nobody(shop: Shop, worker: subprocess.Popen[str]) -> None:
    one, other = shop.ask_many("shop_slow", [{}] * 2)
    for run_id in (one, other):
        shop.wait_until_begun(run_id)
    with locked(shop, one):
        wait_for_renewal(shop, other)
        before = shop.row(other)["progress"]
        wait_until(lambda: shop.row(other)["progress"] != before, "the other run's progress is shown")
    before = shop.row(one)["progress"]
    wait_until(lambda: shop.row(one)["progress"] != before, "the run's own progress is shown again")


def test_a_worker_whose_own_row_is_locked_keeps_its_leases(
    shop: Shop, worker: subprocess.Popen[str], tmp_path: Path
) -> None:
    [run_id] = begun(shop, tmp_path, 1)
    [row] = shop.sql("SELECT id FROM rowcall.workers")
    with locked(shop, row["id"], "workers"):
        wait_for_renewal(shop, run_id)


def test_a_worker_that_was_forgotten_is_known_again(shop: Shop, worker: subprocess.Popen[str]) -> None:
    shop.wait_for_workers(1)
    before = shop.sql("DELETE FROM rowcall.workers RETURNING id, job_types, queues, concurrency, pid")
    shop.wait_for_workers(1)
    assert shop.sql("SELECT id, job_types, queues, concurrency, pid FROM rowcall.workers") == before


def test_the_end_of_a_step_renews_the_lease(shop: Shop) -> None:
    run_id = shop.ask("shop_steps")
    quiet = {**shop.environment, "ROWCALL_HEARTBEAT": "30"}
    assert "succeeded 1" in rowcall(quiet, "worker", "once").stdout
    result = shop.row(run_id)["result"]
    assert result["renewed"] > 0
    assert result["deadline moved"]


def test_a_stopping_worker_writes_what_has_ended_instead_of_releasing_it(shop: Shop, tmp_path: Path) -> None:
    with running(shop.environment, "worker", "run", "--grace", "0", "--concurrency", "4") as worker:
        [run_id] = begun(shop, tmp_path, 1)
        with locked(shop, run_id):
            shop.open_door(run_id)
            # By then, the handler has ended as well, and the worker has tried to write its result.
            for more in shop.ask_many("noop", [{}] * 20):
                shop.wait(more, "succeeded")
            worker.terminate()
            read_until(worker, "worker stopping")
        assert worker.wait() == 0
    run = shop.row(run_id)
    assert (run["status"], run["result"]) == ("succeeded", {"packed": 1, "attempt": 1})
