"""`kill -9` of a worker at any moment: every run ends, every attempt is counted, and nothing is done twice."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.support.gate import Gate, gate
from tests.support.processes import freeze, rowcall, running, start
from tests.support.shop import Shop, kill


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.fixture
def barred(shop: Shop) -> Iterator[Gate]:
    """Yield the gate in the shop's database."""
    with gate(shop.url) as barred:
        yield barred


@dataclass(frozen=True)
class Moment:
    """A write of a worker that can be held in the server: the run that causes it, and the change that it makes.

    Without a change, it is the commit of the handler's own transaction.
    """

    name: str
    job_type: str
    change: str
    ends: str = "well"


CLAIM = Moment("claim", "shop_pack", "NEW.status = 'running' AND OLD.status = 'queued'")
HEARTBEAT = Moment("heartbeat", "shop_slow", "NEW.locked_until > OLD.locked_until")
SUCCESS = Moment("success", "shop_pack", "NEW.status = 'succeeded'")
COMMIT = Moment("commit", "shop_ship", "")
FAILURE = Moment("failure", "shop_pack", "NEW.status = 'failed'", ends="badly at first")
RELEASE = Moment("release", "shop_slow", "NEW.status = 'queued'")

MOMENTS = (CLAIM, HEARTBEAT, SUCCESS, COMMIT, FAILURE, RELEASE)


def catch(shop: Shop, barred: Gate, moment: Moment) -> tuple[subprocess.Popen[str], int]:
    """Hold a write of a new worker; return the worker and its run, in a queue that only this worker serves."""
    if moment.change:
        barred.hold_change(moment.change)
    else:
        barred.hold_commit("shipments")
    [run_id] = shop.ask_many(moment.job_type, [{"ends": moment.ends}], queue=moment.name)
    worker = start(shop.environment, "worker", "run", "--grace", "0", "--queues", moment.name)
    if moment is RELEASE:
        shop.wait_until_begun(run_id)
        worker.terminate()
    barred.wait()
    return worker, run_id


def take_over(shop: Shop) -> None:
    """Let the leases of a dead worker expire, and another worker do what is due."""
    shop.wait_for_the_server()
    shop.expire_leases()
    worked = rowcall(shop.environment, "worker", "once")
    assert worked.returncode == 0, worked.stderr


def before_success(shop: Shop, runs: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the unsuccessful attempts of each run; check that every attempt is counted and the run was done once."""
    found = {}
    for name, run_id in runs.items():
        run, unsuccessful = shop.row(run_id), shop.unsuccessful(run_id)
        assert (run["status"], run["attempts"], run["lease_no"]) == (
            "succeeded",
            len(unsuccessful) + 1,
            len(unsuccessful) + 1,
        ), name
        found[name] = unsuccessful
    [shipped] = shop.sql(
        "SELECT (SELECT count(*) FROM shipments) ="
        " (SELECT count(*) FROM rowcall.job_runs WHERE job_type = 'shop_ship') AS once"
    )
    assert shipped["once"]
    return found


def test_what_the_server_carried_out_for_a_worker_that_was_dead_by_then_counts(shop: Shop, barred: Gate) -> None:
    runs = {}
    for moment in MOMENTS:
        worker, runs[moment.name] = catch(shop, barred, moment)
        kill(worker)
        barred.open()
        shop.wait_for_the_server()
    take_over(shop)
    assert before_success(shop, runs) == {
        "claim": ["expire"],
        "heartbeat": ["expire"],
        "success": [],
        "commit": [],
        "failure": ["fail"],
        "release": ["release"],
    }


def test_what_the_server_undid_with_a_killed_workers_connection_is_done_by_another(shop: Shop, barred: Gate) -> None:
    runs = {}
    for moment in MOMENTS:
        worker, runs[moment.name] = catch(shop, barred, moment)
        kill(worker)
        barred.turn_away()
    take_over(shop)
    assert before_success(shop, runs) == {
        "claim": [],
        "heartbeat": ["expire"],
        "success": ["expire"],
        "commit": ["expire"],
        "failure": ["expire"],
        "release": ["expire"],
    }


def test_a_worker_killed_after_a_commit_and_before_it_knew_of_it_has_done_it(shop: Shop, barred: Gate) -> None:
    runs = {}
    for moment, status in ((CLAIM, "running"), (SUCCESS, "succeeded"), (COMMIT, "succeeded")):
        worker, run_id = catch(shop, barred, moment)
        freeze(worker)
        barred.open()
        shop.wait(run_id, status)
        kill(worker)
        runs[moment.name] = run_id
    take_over(shop)
    assert before_success(shop, runs) == {"claim": ["expire"], "success": [], "commit": []}


def test_a_run_whose_worker_died_at_its_handler_is_done_by_another(shop: Shop) -> None:
    runs = {}
    for job_type, payload in (
        ("shop_ship", {"dies": "in the handler"}),
        ("shop_ship", {"dies": "in its transaction"}),
        ("shop_pack", {"ends": "with the worker, once returned"}),
    ):
        run_id = runs[str(payload)] = shop.ask(job_type, **payload)
        assert rowcall(shop.environment, "worker", "once").returncode == -signal.SIGKILL
        assert shop.row(run_id)["status"] == "running"
        # The server may still carry out the dead worker's last claim, and skip or take the next run.
        shop.wait_for_the_server()
    take_over(shop)
    assert list(before_success(shop, runs).values()) == [["expire"]] * 3


# Writes to job_runs, counted from a worker's first claim: consecutive ones at first, and some later ones.
WRITES = (1, 2, 3, 4, 5, 6, 8, 11, 15, 22)


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "undone"])
def test_whichever_of_its_writes_a_worker_is_killed_at_nothing_is_lost_or_doubled(
    shop: Shop, barred: Gate, carried_out: bool
) -> None:
    orders = 0
    for number in WRITES:
        shop.ask_many("shop_ship", [{"order_id": orders + n} for n in range(number)], max_attempts=100)
        shop.ask_many("noop", [{}] * number, max_attempts=100)
        orders += number
        barred.hold_write(number)
        worker = start(shop.environment, "worker", "once")
        barred.wait()
        kill(worker)
        if carried_out:
            barred.open()
        else:
            barred.turn_away()
        shop.wait_for_the_server()
        shop.expire_leases()
    take_over(shop)
    assert shop.sql("SELECT DISTINCT status, attempts = lease_no AS counted FROM rowcall.job_runs") == [
        {"status": "succeeded", "counted": True}
    ]
    assert shop.sql("SELECT order_id FROM shipments ORDER BY order_id") == [{"order_id": n} for n in range(orders)]
    [lost] = shop.sql("SELECT sum(attempts - 1) AS attempts FROM rowcall.job_runs")
    [kept] = shop.sql("SELECT count(*) AS attempts FROM rowcall.job_attempts WHERE outcome = 'expire'")
    assert lost == kept


def test_a_worker_beside_takes_over_when_the_lease_has_expired_and_not_before(shop: Shop) -> None:
    run_id = shop.ask("shop_slow")
    # The killed worker must send no heartbeat after its lease is back-dated.
    with running({**shop.environment, "ROWCALL_HEARTBEAT": "30"}, "worker", "run") as dying:
        shop.wait(run_id, "running")
        with running(shop.environment, "worker", "run"):
            kill(dying)
            shop.wait(shop.ask("noop"), "succeeded")
            assert shop.row(run_id)["lease_no"] == 1
            shop.expire_leases()
            assert shop.wait(run_id, "succeeded")["attempts"] == 2


def test_a_run_that_kills_every_worker_is_dead_after_its_attempts_and_the_others_end_well(shop: Shop) -> None:
    deadly = shop.ask("shop_pack", ends="with the worker")
    others = shop.ask_many("noop", [{}] * 200, max_attempts=10)
    for _ in range(3):
        assert rowcall(shop.environment, "worker", "once").returncode == -signal.SIGKILL
        shop.wait_for_the_server()
        shop.expire_leases()
    take_over(shop)
    run = shop.row(deadly)
    assert (run["status"], run["attempts"], run["lease_no"], run["error_type"]) == ("dead", 3, 3, "LeaseExpired")
    assert shop.unsuccessful(deadly) == ["expire"] * 3
    assert shop.sql("SELECT DISTINCT status FROM rowcall.job_runs WHERE id = ANY(%(others)s)", others=others) == [
        {"status": "succeeded"}
    ]
