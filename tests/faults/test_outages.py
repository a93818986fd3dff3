"""The database is up but cannot be used for a while: the worker keeps its results, and continues afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg2
import psycopg2.errors
import pytest

from rowcall.base.errors import DatabaseUnreachable
from rowcall.base.outages import is_outage, is_passing
from tests.support.processes import rowcall, running, wait_until
from tests.support.shop import WORKERS_BACKENDS, Shop

END_ALL = f"SELECT pg_terminate_backend(pid) FROM ({WORKERS_BACKENDS} AND pid <> pg_backend_pid()) AS workers"


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@contextmanager
def read_only(shop: Shop) -> Iterator[None]:
    """Make the database read-only for new connections, as a failover or a full disk does."""
    name = shop.url.rpartition("/")[2]
    shop.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    shop.sql(END_ALL)
    yield
    shop.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")


@pytest.mark.parametrize(("ends", "status"), [("well", "succeeded"), ("for good", "dead")])
def test_a_worker_outlives_a_read_only_database_and_loses_no_result(
    shop: Shop, tmp_path: Path, ends: str, status: str
) -> None:
    with running(shop.environment, "worker", "run") as worker:
        run_id = shop.ask("shop_wait", doors=str(tmp_path), ends=ends)
        shop.wait_for_knock(run_id)
        with read_only(shop):
            before = shop.sql(WORKERS_BACKENDS)
            shop.open_door(run_id)
            # The worker has noticed on all connections: it closed each of the old ones, and tried a new one.
            wait_until(lambda: shop.sql(WORKERS_BACKENDS) not in ([], before), "the worker tries again")
            assert shop.row(run_id)["status"] == "running"
        assert shop.wait(run_id, status)["lease_no"] == 1
        shop.wait(shop.ask("noop"), "succeeded")
        said = ended(worker)
        assert (worker.returncode, said.count('"database lost"')) == (0, 1)
        assert '"lease lost"' not in said


def test_a_worker_outlives_a_server_that_ends_its_connections_one_after_another(shop: Shop) -> None:
    with running(shop.environment, "worker", "run") as worker:
        for _ in range(3):
            shop.wait(shop.ask("noop"), "succeeded")
            shop.sql(END_ALL)
        shop.wait(shop.ask("noop"), "succeeded")
        ended(worker)
        assert worker.returncode == 0


def test_a_worker_outlives_a_server_that_ends_idle_sessions(shop: Shop) -> None:
    shop.sql(f"ALTER DATABASE {shop.url.rpartition('/')[2]} SET idle_session_timeout = '300ms'")
    with running(shop.environment, "worker", "run") as worker:
        for _ in range(3):
            assert shop.wait(shop.ask("noop"), "succeeded")["lease_no"] == 1
            wait_until(partial(one_has_ended, shop, set()), "the server ends a session")
        assert '"database back"' in ended(worker)
        assert worker.returncode == 0


def one_has_ended(shop: Shop, seen: set[int]) -> bool:
    """Whether one of the backends that earlier calls have seen is gone."""
    alive = {row["pid"] for row in shop.sql(WORKERS_BACKENDS)}
    seen |= alive
    return bool(seen - alive)


def ended(worker: subprocess.Popen[str]) -> str:
    """Stop the worker, and return its output."""
    worker.terminate()
    said, _ = worker.communicate()
    return said


@pytest.mark.parametrize("command", [("worker", "once"), ("worker", "run"), ("enqueue", "noop", "{}")], ids=" ".join)
def test_a_command_says_in_one_sentence_that_the_database_is_read_only(shop: Shop, command: tuple[str, ...]) -> None:
    with read_only(shop):
        refused = rowcall(shop.environment, *command)
        found = rowcall(shop.environment, "doctor")
    assert (refused.returncode, refused.stdout) == (3, "")
    [sentence] = refused.stderr.splitlines()
    assert sentence.startswith("rowcall: the database is read-only")
    assert "read-only" in found.stdout + found.stderr
    assert found.returncode == 1


CODES = {
    "25006": psycopg2.InternalError,
    "25P03": psycopg2.InternalError,
    "53100": psycopg2.OperationalError,
    "53200": psycopg2.OperationalError,
    "53300": psycopg2.OperationalError,
    "57P01": psycopg2.OperationalError,
    "57P02": psycopg2.OperationalError,
    "57P03": psycopg2.OperationalError,
    "08006": psycopg2.OperationalError,
}


def error_of_server(code: str) -> psycopg2.Error:
    """Return the error that the driver makes from the server's answer."""
    error: psycopg2.Error = psycopg2.errors.lookup(code)("no")
    error.__setstate__({"pgcode": code})  # type: ignore[no-untyped-call]  # the driver's stubs leave it untyped
    return error


@pytest.mark.parametrize("code", CODES)
def test_what_the_server_cannot_do_just_now_is_an_outage(code: str) -> None:
    raised = error_of_server(code)
    assert isinstance(raised, CODES[code])
    assert is_outage(raised)
    assert not is_passing(raised)


@pytest.mark.parametrize("code", ["54000", "22003", "42P01", "23505"])
def test_what_the_server_will_never_do_is_none(code: str) -> None:
    raised = error_of_server(code)
    assert not is_outage(raised)
    assert not is_passing(raised)


def test_a_lost_connection_is_an_outage_and_a_lock_or_a_deadlock_is_a_matter_of_moments() -> None:
    for lost in (psycopg2.OperationalError("gone"), psycopg2.InterfaceError("closed"), DatabaseUnreachable("none")):
        assert is_outage(lost)
    for code in ("55P03", "40P01", "40001", "57014"):
        raised = error_of_server(code)
        assert is_passing(raised)
        assert not is_outage(raised)
    assert not is_outage(ValueError("a mistake"))
