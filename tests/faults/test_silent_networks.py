"""The network between a worker and its database falls silent: it accepts everything and answers nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowcall.base.database import PgConnection
from rowcall.queue.fragments import CHANNEL
from tests.definitions.keeping import asleep_since, hourly_but_not_now, kept, occurred
from tests.support.gate import gate
from tests.support.processes import running, wait_until
from tests.support.shop import Shop
from tests.support.silence import Network, network

# A worker that waits one second for an answer; in production, it waits ten.
IMPATIENT = """
from rowcall.base import logs, settings
from rowcall_worker.runtime.task import Task
from rowcall_worker.runtime.worker import Worker
chosen = settings.read()
logs.configure(chosen)
Worker(chosen, chosen.database_url, Task(once=False, concurrency=4), patience=1.0).work()
"""

OTHERS_AT_WORK = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.fixture
def wires(shop: Shop) -> Iterator[Network]:
    with network(shop.url) as between:
        yield between


@contextmanager
def impatient(shop: Shop, wires: Network, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """Run such a worker behind the network."""
    environment = {**shop.environment, "DATABASE_URL": wires.url, **settings}
    with subprocess.Popen([sys.executable, "-c", IMPATIENT], env=environment, stderr=subprocess.PIPE, text=True) as one:
        try:
            yield one
        except BaseException:
            one.kill()
            sys.stderr.write(one.communicate()[1])  # shown when the test fails
            raise
        one.kill()


def fall_silent(shop: Shop, wires: Network) -> None:
    """Stop the network, and wait until the server has executed all that arrived before.

    Otherwise a claim in progress would take what the test enqueues next and, because its answer is lost, hold it for a
    whole lease.
    """
    wires.fall_silent()
    wait_until(lambda: not shop.sql(OTHERS_AT_WORK), "the server has executed what had arrived")


def test_a_worker_whose_connections_are_silent_is_at_work_again_and_has_lost_no_lease(
    shop: Shop, wires: Network, tmp_path: Path
) -> None:
    with impatient(shop, wires) as worker:
        run_id = shop.ask("shop_wait", doors=str(tmp_path))
        shop.wait_for_knock(run_id)
        fall_silent(shop, wires)
        before = shop.row(run_id)["locked_until"]
        for other in shop.ask_many("noop", [{}] * 20):
            shop.wait(other, "succeeded")
        wait_until(lambda: shop.row(run_id)["locked_until"] > before, "the lease is renewed again")
        shop.open_door(run_id)
        assert shop.wait(run_id, "succeeded")["lease_no"] == 1
        worker.terminate()
        _, said = worker.communicate()
        assert worker.returncode == 0
        assert '"database lost"' in said
        assert "the server did not answer within 1 s, so Rowcall closed the connection" in said
        assert '"lease lost"' not in said


def test_a_worker_is_woken_again_after_what_it_listened_on_fell_silent(shop: Shop, wires: Network) -> None:
    with impatient(shop, wires, ROWCALL_POLL="3600"):
        shop.wait(shop.ask("noop"), "succeeded")
        fall_silent(shop, wires)
        for _ in range(2):
            run_id = shop.ask("noop")
            shop.sql(f"NOTIFY {CHANNEL}")
            shop.wait(run_id, "succeeded")


def test_a_tick_that_fell_silent_keeps_no_definition_from_the_next(
    shop: Shop, wires: Network, connection: PgConnection
) -> None:
    row = kept(connection, schedule=hourly_but_not_now(connection))
    asleep_since(connection, row, "1 hour")
    with gate(shop.url) as barred, impatient(shop, wires) as worker:
        barred.hold_change("true", "job_definitions")
        barred.wait()
        wires.fall_silent()
        worker.kill()
        barred.open()
        with running(shop.environment, "worker", "run"):
            wait_until(lambda: occurred(connection, row), "another worker has decided the due times")


@pytest.mark.parametrize("suspect", [0, 1])
def test_a_claim_whose_answer_was_lost_goes_back_and_costs_no_attempt(shop: Shop, wires: Network, suspect: int) -> None:
    with gate(shop.url) as barred, impatient(shop, wires) as worker:
        shop.wait(shop.ask("noop"), "succeeded")
        barred.hold_change("NEW.status = 'running' AND OLD.status = 'queued'")
        [run_id] = shop.ask_many("noop", [{}], suspect=suspect)
        barred.wait()
        assert worker.stderr is not None
        assert any('"database lost"' in line for line in worker.stderr), "it gives up its connection"
        barred.open()
        row = shop.wait(run_id, "succeeded")
        assert (row["attempts"], row["lease_no"]) == (1, 2)


def test_a_worker_that_ends_soon_after_an_answer_was_lost_leaves_no_lease_behind(shop: Shop, wires: Network) -> None:
    with gate(shop.url) as barred, impatient(shop, wires) as worker:
        shop.wait(shop.ask("noop"), "succeeded")
        barred.hold_change("NEW.status = 'running' AND OLD.status = 'queued'")
        run_id = shop.ask("noop")
        barred.wait()
        worker.send_signal(signal.SIGSTOP)
        wires.fall_silent()
        barred.open()
        shop.wait(run_id, "running")
        worker.send_signal(signal.SIGCONT)
        assert worker.stderr is not None
        assert any('"database lost"' in line for line in worker.stderr), "it gives up its connection"
        worker.terminate()
        assert worker.wait() == 0
        row = shop.row(run_id)
        assert (row["status"], row["attempts"]) == ("queued", 0)


def test_a_worker_that_waits_for_a_silent_database_ends_when_it_is_told_to(shop: Shop, wires: Network) -> None:
    with impatient(shop, wires, ROWCALL_GRACE="0") as worker:
        run_id = shop.ask("shop_slow")
        shop.wait_until_begun(run_id)
        wires.fall_silent()
        worker.terminate()
        assert worker.wait() == 0
        shop.wait(run_id, "queued")
