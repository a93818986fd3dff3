"""What a handler does around its own transactions: they end with their block, and nothing after them is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from psycopg2.errors import DivisionByZero

from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.settings import Settings
from rowcall.base.watched import Answers
from rowcall.queue import Claimed, enqueue
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.gateways import Gateways
from tests.support.logged import logged
from tests.support.rows import WORKER, row_of, run_in

Attempt = Callable[[Callable[[Run], object]], AttemptResult]


@pytest.fixture
def row(fresh_url: str) -> Row:
    """Insert a running run."""
    with database.transaction(fresh_url) as connection:
        return run_in(connection, Status.RUNNING)


@pytest.fixture
def run_id(row: Row) -> int:
    run_id: int = row["id"]
    return run_id


@pytest.fixture
def attempt(fresh_url: str, row: Row) -> Attempt:
    """Return a function that lets a handler work on the run."""
    claimed = Claimed(row["id"], row["lease_no"], "noop", {}, row["attempts"], row["max_attempts"], None)
    resources = Resources(Connections(fresh_url, Answers()), Gateways(Settings()), 0.0, {"noop": 60.0})
    return lambda handler: Runner({"noop": handler}, resources).attempt(InFlightRun(WORKER, claimed, elapsed() + 60))


def succeed(run: Run) -> None:
    with run.transaction({"packed": True}) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def begin_a_step(run: Run) -> None:
    succeed(run)
    with run.step():
        pass


def break_late(run: Run) -> None:
    succeed(run)
    raise RuntimeError("the email could not be written")


def go_on_after_an_error(run: Run) -> int:
    with run.step() as connection:
        with pytest.raises(DivisionByZero), database.all_or_nothing(connection):
            fetch_all(connection, "SELECT 1 / 0")
        found: int = database.fetch_value(connection, "SELECT 2")
    return found


def test_a_block_that_fails_in_the_database_leaves_the_rest_of_a_handlers_transaction(attempt: Attempt) -> None:
    assert attempt(go_on_after_an_error).value == "2"


@pytest.mark.parametrize(
    ("handler", "told"), [(break_late, "the email could not"), (begin_a_step, "end with that block")]
)
def test_an_error_after_the_success_is_logged_with_its_stack(
    attempt: Attempt, fresh_url: str, run_id: int, handler: Callable[[Run], object], told: str
) -> None:
    with logged() as lines:
        assert attempt(handler).finished
    assert [(line["event"], line["run_id"]) for line in lines] == [
        ("handler failed after its run had succeeded", run_id)
    ]
    assert told in lines[0]["exception"]
    with database.transaction(fresh_url) as connection:
        assert row_of(connection, run_id)["status"] == "succeeded"


def commit(connection: PgConnection) -> None:
    connection.commit()


def roll_back(connection: PgConnection) -> None:
    connection.rollback()


def commit_with_the_drivers_block(connection: PgConnection) -> None:
    with connection:
        pass


@pytest.mark.parametrize("ending", [commit, roll_back, commit_with_the_drivers_block])
@pytest.mark.parametrize("block", [Run.transaction, Run.step])
def test_ending_the_transaction_within_the_block_is_refused_and_nothing_of_it_is_kept(
    attempt: Attempt,
    fresh_url: str,
    run_id: int,
    block: Callable[[Run], AbstractContextManager[PgConnection]],
    ending: Callable[[PgConnection], None],
) -> None:
    def handler(run: Run) -> None:
        with block(run) as connection:
            database.fetch_all(connection, "CREATE TABLE public.kept ()")
            ending(connection)

    error = attempt(handler).error
    assert error is not None
    assert (error.failure.permanent, "which commits at the end of the block" in error.failure.error) == (True, True)
    with database.transaction(fresh_url) as connection:
        assert database.fetch_value(connection, "SELECT to_regclass('public.kept') IS NULL")
        assert row_of(connection, run_id)["status"] == "running"


def test_what_a_thread_of_the_handler_logs_carries_the_run(attempt: Attempt, row: Row) -> None:
    def handler(run: Run) -> None:
        thread = threading.Thread(target=lambda: run.log.info("packed", boxes=3))
        thread.start()
        thread.join()

    with logged() as lines:
        attempt(handler)
    assert [(line["run_id"], line["lease_no"], line["boxes"]) for line in lines] == [(row["id"], row["lease_no"], 3)]


def test_a_run_that_a_handler_enqueues_is_created_by_the_handlers_run(
    attempt: Attempt, fresh_url: str, run_id: int
) -> None:
    def enqueue_two(run: Run) -> None:
        with database.transaction(fresh_url) as own:
            enqueue(own, "noop", {}, created_by="sales")
        with run.transaction() as connection:
            enqueue(connection, "noop", {})

    assert attempt(enqueue_two).finished
    with database.transaction(fresh_url) as connection:
        enqueue(connection, "noop", {})
        made = fetch_all(
            connection, "SELECT created_by FROM rowcall.job_runs WHERE id > %(id)s ORDER BY id", {"id": run_id}
        )
    assert [row["created_by"] for row in made] == [f"run {run_id} (sales)", f"run {run_id}", None]
