"""Workers that are stopped in the middle of slow work, or of much work: nothing is lost or done twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from rowcall.base import database
from tests.support.gate import gate
from tests.support.processes import read_until, rowcall, start, wait_until
from tests.support.shop import Shop

WAITS_FOR_A_ROW = """
SELECT pid FROM pg_stat_activity WHERE application_name = 'rowcall worker producer' AND wait_event_type = 'Lock'
"""


# A worker that waits for no claim in progress before it releases what its handlers have begun, and one second for the
# last results; in production, it waits two and ten seconds.
HASTY = """
from rowcall.base import logs, settings
from rowcall_worker.runtime import worker
worker.CLAIM_SECONDS = 0
chosen = settings.read()
logs.configure(chosen)
worker.Worker(chosen, chosen.database_url, worker.Task(once=False, concurrency=4), patience=1.0).work()
"""


@contextmanager
def hasty(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    """Start such a worker for the block, and kill it at the end if it still runs."""
    environment = {**shop.environment, "ROWCALL_GRACE": "0"}
    command = [sys.executable, "-c", HASTY]
    with subprocess.Popen(command, env=environment, text=True, stdout=PIPE, stderr=STDOUT) as worker:
        try:
            yield worker
        finally:
            worker.kill()


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    return Shop(environment, worker_url)


def test_what_was_begun_is_finished_under_its_lease_and_nothing_else_is_begun(shop: Shop, tmp_path: Path) -> None:
    begun = shop.ask("shop_wait", doors=str(tmp_path))
    worker = start(shop.environment, "worker", "run", "--grace", "3600")
    shop.wait_for_knock(begun)
    worker.terminate()
    read_until(worker, "worker stopping")
    until = shop.row(begun)["locked_until"]
    later = shop.ask("noop")
    wait_until(lambda: shop.row(begun)["locked_until"] > until, "the stopping worker renews its lease")
    shop.open_door(begun)
    worker.communicate()
    assert worker.returncode == 0
    run = shop.row(begun)
    assert (run["status"], run["attempts"], run["lease_no"]) == ("succeeded", 1, 1)
    assert shop.row(later)["status"] == "queued"


def test_what_the_grace_was_too_short_for_is_done_by_the_next_worker(shop: Shop) -> None:
    begun = [shop.ask("shop_slow") for _ in range(3)]
    worker = start(shop.environment, "worker", "once", "--grace", "0")
    for run_id in begun:
        shop.wait_until_begun(run_id)
    worker.terminate()
    said, _ = worker.communicate()
    assert (worker.returncode, said.count("run released")) == (0, 3), said
    assert "claimed 3, succeeded 3" in rowcall(shop.environment, "worker", "once").stdout
    for run_id in begun:
        run = shop.row(run_id)
        assert (run["status"], run["attempts"], run["result"]) == ("succeeded", 2, {"attempt": 2})
        assert shop.unsuccessful(run_id) == ["release"]


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
def test_a_run_whose_end_cannot_be_written_before_the_worker_ends_is_named(shop: Shop, tmp_path: Path) -> None:
    begun = shop.ask("shop_wait", doors=str(tmp_path))
    with hasty(shop) as worker:
        shop.wait_for_knock(begun)
        with database.transaction(shop.url) as holder:
            database.fetch_all(holder, "SELECT FROM rowcall.job_runs FOR UPDATE")
            shop.open_door(begun)
            wait_until(lambda: shop.sql(WAITS_FOR_A_ROW), "the worker tries to write the result")
            worker.terminate()
            said, _ = worker.communicate()
    left = [line for line in map(json.loads, said.splitlines()) if line["event"] == "run left until its lease expires"]
    assert [(line["run_id"], line["reason"]) for line in left] == [(begun, "its result could not be written")]


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
def test_what_a_slow_claim_brings_to_a_stopping_worker_is_returned(shop: Shop) -> None:
    with gate(shop.url) as held:
        held.hold_change("NEW.status = 'running'")
        asked = shop.ask("noop")
        with hasty(shop) as worker:
            held.wait()
            worker.terminate()
            read_until(worker, "worker stopping")
            held.open()
            said, _ = worker.communicate()
    assert (worker.returncode, said.count("run left until its lease expires")) == (0, 0), said
    run = shop.row(asked)
    assert (run["status"], run["attempts"]) == ("queued", 0)


SHIPMENTS = 200
QUICK = 1500


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
def test_stopping_one_worker_after_another_in_the_middle_of_much_work_costs_no_attempt(shop: Shop) -> None:
    shop.ask_many("shop_ship", [{"order_id": number} for number in range(SHIPMENTS)])
    shop.ask_many("noop", [{}] * QUICK)
    for _ in range(3):
        worker = start(shop.environment, "worker", "once")
        shop.wait_for_more(10, worker)
        worker.terminate()
        said, _ = worker.communicate()
        assert (worker.returncode, said.count("run left until its lease expires")) == (0, 0), said
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    assert shop.sql("SELECT status, attempts, count(*) FROM rowcall.job_runs GROUP BY 1, 2") == [
        {"status": "succeeded", "attempts": 1, "count": SHIPMENTS + QUICK}
    ]
    assert shop.sql("SELECT order_id FROM shipments ORDER BY order_id") == [{"order_id": n} for n in range(SHIPMENTS)]
