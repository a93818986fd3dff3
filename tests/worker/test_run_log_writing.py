"""A run's log is written with the heartbeat or the attempt's end, under the lease, and with nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.status import Status
from rowcall_worker.attempt.context import Run
from rowcall_worker.attempt.result import AttemptResult
from tests.support.logged import logged
from tests.worker.desk import Desk

# Whether the run's row and its line were written by one transaction.
SAME_TRANSACTION = """
SELECT run.xmin::text = line.xmin::text AS same FROM rowcall.job_runs AS run
JOIN rowcall.run_logs AS line ON line.run_id = run.id WHERE run.id = %(run_id)s
"""

LATER = AttemptResult.of_error(ValueError("it broke"))


@pytest.fixture
def desk(fresh_url: str) -> Iterator[Desk]:
    desk = Desk(fresh_url)
    yield desk
    desk.link.close()
    desk.heart.link.close()


def test_a_run_that_logs_nothing_goes_with_the_exchange_and_costs_nothing(desk: Desk) -> None:
    desk.attempt(lambda run: None)
    assert desk.run.log is None
    assert desk.end() == [desk.run]


@pytest.mark.parametrize(
    ("result", "becomes"), [(AttemptResult("7"), Status.SUCCEEDED), (LATER, Status.FAILED)], ids=["success", "failure"]
)
def test_the_log_is_written_with_the_end_and_in_its_transaction(
    desk: Desk, result: AttemptResult, becomes: Status
) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    assert desk.end(result) == []
    assert (desk.status, desk.log) == (becomes, [("info", "packed")])
    assert desk.sql(SAME_TRANSACTION) == [{"same": True}]


def test_the_heartbeat_writes_the_log_in_its_own_transaction(desk: Desk) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    desk.heart.tick()
    assert desk.log == []
    desk.beat()
    assert (desk.log, desk.run.unwritten) == ([("info", "packed")], [])
    assert desk.sql(SAME_TRANSACTION) == [{"same": True}]


def test_progress_takes_the_log_with_it(desk: Desk) -> None:
    def handler(run: Run) -> None:
        run.log.info("packed")
        run.progress(0.5)

    desk.attempt(handler)
    desk.heart.tick()
    assert desk.log == [("info", "packed")]


def test_a_heartbeat_that_finds_the_row_locked_keeps_the_lines_for_the_next(desk: Desk) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    with database.transaction(desk.url) as other:
        fetch_all(other, f"SELECT FROM rowcall.job_runs WHERE id = {desk.run.lease.run_id} FOR UPDATE")
        desk.beat()
        assert len(desk.run.unwritten) == 1
    desk.beat()
    assert desk.log == [("info", "packed")]


def test_an_end_that_finds_the_row_locked_keeps_the_lines_for_the_next_try(desk: Desk) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    with database.transaction(desk.url) as other:
        fetch_all(other, f"SELECT FROM rowcall.job_runs WHERE id = {desk.run.lease.run_id} FOR UPDATE")
        desk.end()
    assert (desk.status, desk.log) == (Status.RUNNING, [])
    desk.run.write_at = 0.0
    desk.end()
    assert (desk.status, desk.log) == (Status.SUCCEEDED, [("info", "packed")])


@pytest.mark.parametrize("write", [Desk.beat, Desk.end], ids=["the heartbeat", "the end"])
def test_a_worker_that_lost_its_lease_writes_no_line(desk: Desk, write: Callable[[Desk], object]) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    desk.sql("UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(run_id)s")
    write(desk)
    assert (desk.status, desk.log) == (Status.RUNNING, [])


def test_a_thread_of_the_handler_that_logs_after_the_end_changes_nothing(desk: Desk) -> None:
    goes_on, threads = threading.Event(), []

    def handler(run: Run) -> None:
        def go_on() -> None:
            goes_on.wait()
            run.log.info("too late")

        run.log.info("packed")
        threads.append(threading.Thread(target=go_on))
        threads[0].start()

    desk.attempt(handler)
    desk.end()
    goes_on.set()
    threads[0].join()
    desk.beat()
    assert (desk.status, desk.log) == (Status.SUCCEEDED, [("info", "packed")])


def test_lines_of_several_threads_are_all_kept_each_with_its_own_number(desk: Desk) -> None:
    def handler(run: Run) -> None:
        def log() -> None:
            for _ in range(100):
                run.log.info("x")

        threads = [threading.Thread(target=log) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    desk.attempt(handler)
    assert [line.number for line in desk.run.unwritten] == [*range(1, 401)]


def test_a_process_that_the_handler_forks_writes_to_no_log_of_its_parent(desk: Desk) -> None:
    def handler(run: Run) -> None:
        run.log.info("in the worker")
        if (child := os.fork()) == 0:
            run.log.info("in the child")
            os._exit(len(run._in_flight.unwritten))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    assert desk.attempt(handler).error is None


def test_the_log_commits_with_the_handler_s_own_transaction(desk: Desk) -> None:
    def handler(run: Run) -> None:
        with run.transaction():
            run.log.info("packed")

    assert desk.attempt(handler).finished
    assert (desk.status, desk.log) == (Status.SUCCEEDED, [("info", "packed")])


def test_what_was_logged_in_a_transaction_that_is_rolled_back_is_kept_with_the_failure(desk: Desk) -> None:
    def handler(run: Run) -> None:
        with run.transaction():
            run.log.info("packed")
            raise ValueError("it broke")

    desk.end(desk.attempt(handler))
    assert (desk.status, desk.log) == (Status.FAILED, [("info", "packed")])


@pytest.mark.parametrize("write", [Desk.beat, Desk.end], ids=["the heartbeat", "the end"])
def test_a_database_that_refuses_the_lines_loses_neither_the_lease_nor_the_end(
    desk: Desk, write: Callable[[Desk], object]
) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    desk.sql("ALTER TABLE rowcall.run_logs ADD CHECK (text <> 'packed')")
    before = desk.sql("SELECT updated_at, status FROM rowcall.job_runs WHERE id = %(run_id)s")
    with logged() as lines:
        write(desk)
    assert before != desk.sql("SELECT updated_at, status FROM rowcall.job_runs WHERE id = %(run_id)s")
    assert [line["event"] for line in lines] == ["run log refused by the database"]


def test_a_result_that_cannot_be_stored_fails_the_run_and_keeps_its_log(desk: Desk) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    desk.end(AttemptResult('"' + "x" * 70_000 + '"'))
    assert (desk.status, desk.log) == (Status.DEAD, [("info", "packed")])


def test_a_stopping_worker_releases_a_run_with_its_log(desk: Desk) -> None:
    desk.attempt(lambda run: run.log.info("packed"))
    desk.completer.release(desk.heart.link, [desk.run], "the worker stops")
    assert (desk.status, desk.log) == (Status.QUEUED, [("info", "packed")])
