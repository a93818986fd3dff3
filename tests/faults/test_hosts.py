"""Three hosts: one loses its network, one is frozen, and one has a wrong clock.  Every run still takes effect once.

The workers' leases are as long as in production; the test back-dates those that are to end.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.queue import explain
from rowcall.queue.views.workers import list_workers
from tests.support.hosts import Host, hosts
from tests.support.processes import freeze
from tests.support.shop import Shop
from tests.support.wrong_clock import wrong_clock

pytestmark = [pytest.mark.program(name) for name in ("ip", "faketime")]

NAMES = ("web-1", "web-2", "web-3")

HEARTBEAT = 20.0

TAKE_FROM = "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE id = ANY(%(ids)s)"
SHIPPED = "SELECT order_id, count(*) AS times FROM shipments GROUP BY order_id ORDER BY order_id"


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@contextmanager
def one_run_each(
    shop: Shop, machines: list[Host], environments: list[dict[str, str]], doors: Path
) -> Iterator[list[tuple[subprocess.Popen[str], int]]]:
    """Yield the worker of each host, and the run that waits in it at its door: order 1 on the first host, and so on."""
    with ExitStack() as stack:
        placed = []
        for number, (host, environment) in enumerate(zip(machines, environments, strict=True), 1):
            door = doors / host.name
            door.mkdir()
            worker = stack.enter_context(host.running(environment, "worker", "run", "--concurrency", "1"))
            # The workers of the other hosts are full.
            [run_id] = shop.ask_many("shop_wait", [{"order_id": number, "ends": "shipped", "doors": str(door)}])
            shop.wait_for_knock(run_id)
            placed.append((worker, run_id))
        yield placed


def holder(shop: Shop, run_id: int) -> str:
    """Return the host whose worker performs this run, as its row says it."""
    name: str = shop.row(run_id)["locked_by"].partition(":")[0]
    return name


def logged(worker: subprocess.Popen[str], event: str) -> dict[str, object]:
    """Return the next line in which a worker logs this event."""
    assert worker.stdout is not None
    return next(line for line in map(json.loads, worker.stdout) if line["event"] == event)


def test_each_run_ships_once_though_one_host_is_cut_off_and_another_frozen(shop: Shop, tmp_path: Path) -> None:
    with hosts(shop.url, *NAMES) as (url, machines):
        there = {**shop.environment, "DATABASE_URL": url}
        with one_run_each(shop, machines, [there, there, wrong_clock(there, 45)], tmp_path) as placed:
            (cut_off, first), (frozen, second), (_, third) = placed
            assert [holder(shop, run_id) for _, run_id in placed] == [*NAMES]
            machines[0].cut_off()
            freeze(frozen)
            shop.open_door(third)
            shop.wait(third, "succeeded")
            # Nobody takes what still has a lease.
            assert [shop.row(run_id)["lease_no"] for run_id in (first, second)] == [1, 1]
            shop.sql(TAKE_FROM, ids=[first, second])
            for run_id in (first, second):
                shop.wait_for_knock(run_id, 2)
                assert holder(shop, run_id) == "web-3"
                shop.open_door(run_id, 2)
                shop.wait(run_id, "succeeded")
            logged(cut_off, "database lost")
            # The handlers of the lost leases go on: their writes are refused.
            for run_id in (first, second):
                shop.open_door(run_id, 1)
            machines[0].connect()
            frozen.send_signal(signal.SIGCONT)
            for worker, run_id in ((cut_off, first), (frozen, second)):
                assert logged(worker, "lease lost")["run_id"] == run_id
    assert shop.sql(SHIPPED) == [{"order_id": number, "times": 1} for number in (1, 2, 3)]
    assert [shop.row(run_id)["result"] for _, run_id in placed] == [{"lease": 2}, {"lease": 2}, {"lease": 1}]


def test_people_are_told_which_host_performs_a_run(shop: Shop, tmp_path: Path) -> None:
    with hosts(shop.url, *NAMES) as (url, machines):
        there = {**shop.environment, "DATABASE_URL": url}
        with (
            one_run_each(shop, machines, [there] * len(NAMES), tmp_path) as placed,
            database.transaction(shop.url) as connection,
        ):
            listed = list_workers(connection, heartbeat=HEARTBEAT).workers
            told = {
                name: explain(connection, run_id, {}, HEARTBEAT).message
                for (_, run_id), name in zip(placed, NAMES, strict=True)
            }
    assert {(one["hostname"], one["runs"][0]["run_id"]) for one in listed} == {
        (name, run_id) for name, (_, run_id) in zip(NAMES, placed, strict=True)
    }
    for name, message in told.items():
        assert f"{name}:" in message
