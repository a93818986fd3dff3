"""A run's log in the database: written under the lease, with the end of the attempt, and never more than the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.queue import Done, Failure, Lease, LogLine
from rowcall.queue.run_log import BYTES_MOST, LINES_MOST, PORTION_CHARACTERS, portions
from rowcall.status import Status
from tests.support.locks import wait_for_a_waiting_session
from tests.support.rows import WORKER, row_of, run_in
from tests.support.run_log import insert_lines, lease_of, lines, texts

FAILURE = Failure("it broke", "ValueError")
OPERATOR = Operator("a test")

Ending = Callable[[PgConnection, Lease, Sequence[LogLine]], object]

ENDINGS: dict[str, Ending] = {
    "succeed": lambda connection, lease, log: queue.succeed(connection, [Done(lease, None)], {lease: log}),
    "fail": lambda connection, lease, log: queue.fail(connection, lease, FAILURE, 30, log),
    "give up": lambda connection, lease, log: queue.give_up(connection, lease, FAILURE, log),
    "release": lambda connection, lease, log: queue.release(connection, lease, "stopping", log=log),
    "snooze": lambda connection, lease, log: queue.snooze(
        connection, lease, datetime.now(UTC) + timedelta(days=1), "later", log=log
    ),
    "cancelled": lambda connection, lease, log: queue.cancelled(connection, lease, log=log),
}


def running(connection: PgConnection, **columns: str) -> Row:
    return run_in(connection, Status.RUNNING, cancel_requested_at="now()", **columns)


@pytest.mark.parametrize("end", ENDINGS.values(), ids=list(ENDINGS))
def test_each_end_of_an_attempt_writes_its_log_and_ends_the_run(connection: PgConnection, end: Ending) -> None:
    run = running(connection)
    assert end(connection, lease_of(run), lines("one", "two"))
    assert texts(connection, run["id"]) == ["one", "two"]
    assert row_of(connection, run["id"])["status"] != Status.RUNNING


@pytest.mark.parametrize("end", [*ENDINGS.values(), lambda c, lease, log: queue.write_log(c, {lease: log})])
@pytest.mark.parametrize(
    ("worker", "lease_no"), [(WORKER, 2), (WORKER, 4), ("worker-2", 3)], ids=["earlier", "later", "another worker"]
)
def test_a_worker_that_lost_its_lease_writes_no_line(
    connection: PgConnection, end: Ending, worker: str, lease_no: int
) -> None:
    run = running(connection)
    assert not end(connection, Lease(worker, run["id"], lease_no), lines("one"))
    assert texts(connection, run["id"]) == []


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.RUNNING])
def test_no_line_is_written_after_the_run_has_ended(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status)
    queue.write_log(connection, {lease_of(run): lines("one")})
    assert texts(connection, run["id"]) == []


def test_lines_of_many_runs_are_written_together_each_under_its_own_lease(connection: PgConnection) -> None:
    one, other, lost = (running(connection) for _ in range(3))
    stale = lease_of(lost)._replace(lease_no=lost["lease_no"] - 1)
    queue.write_log(connection, {lease_of(one): lines("a", "b"), lease_of(other): lines("c"), stale: lines("d")})
    assert [texts(connection, run["id"]) for run in (one, other, lost)] == [["a", "b"], ["c"], []]


def test_a_write_that_is_repeated_because_its_commit_was_not_confirmed_adds_nothing(connection: PgConnection) -> None:
    lease = lease_of(running(connection))
    queue.write_log(connection, {lease: lines("one", "two")})
    queue.write_log(connection, {lease: lines("one", "two", "three")})
    assert texts(connection, lease.run_id) == ["one", "two", "three"]


def test_a_line_has_the_time_at_which_it_was_logged_by_the_database_s_clock(connection: PgConnection) -> None:
    lease = lease_of(running(connection))
    queue.write_log(connection, {lease: [LogLine(1, elapsed() - 3600, "info", "an hour ago")]})
    age = "SELECT clock_timestamp() - logged_at BETWEEN interval '1 hour' AND interval '2 hours' FROM rowcall.run_logs"
    assert fetch_value(connection, f"{age} WHERE run_id = %(run_id)s", {"run_id": lease.run_id})


def test_the_next_attempt_continues_the_log_and_its_numbers(connection: PgConnection) -> None:
    run = running(connection)
    queue.write_log(connection, {lease_of(run): lines("one", "two")})
    fetch_all(connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(id)s", run)
    following = lease_of(row_of(connection, run["id"]))
    queue.write_log(connection, {following: lines("three")})
    queue.write_log(connection, {following: lines("four", first=2)})
    assert [(line["line_no"], line["lease_no"], line["text"]) for line in queue.log_end(connection, run["id"], 9)] == [
        (1, 3, "one"),
        (2, 3, "two"),
        (3, 4, "three"),
        (4, 4, "four"),
    ]


def test_a_run_keeps_its_newest_lines_and_knows_how_many_were_left_out(connection: PgConnection) -> None:
    run = running(connection)
    insert_lines(connection, run["id"], range(1, LINES_MOST + 1))
    # The worker itself has left out lines 2 and 3 of its lease.
    queue.write_log(connection, {lease_of(run): [*lines("first"), *lines("fourth", first=4)]})
    kept = queue.log_end(connection, run["id"], 2000)
    assert (len(kept), kept[0]["text"], kept[-1]["text"]) == (LINES_MOST, "line 3", "fourth")
    assert queue.left_out(connection, run["id"]) == 4


def test_a_run_keeps_no_more_than_its_share_of_bytes(connection: PgConnection) -> None:
    run = running(connection)
    insert_lines(connection, run["id"], range(1, 41), "é" * 5000)
    queue.write_log(connection, {lease_of(run): lines("é" * 100)})
    kept = texts(connection, run["id"])
    assert BYTES_MOST - 10_010 < sum(len(text.encode()) for text in kept) <= BYTES_MOST
    assert kept[-1] == "é" * 100


def test_an_end_beside_a_heartbeat_that_writes_the_log_too_keeps_no_more_lines(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run = running(connection)
    log = lines(*(str(number) for number in range(LINES_MOST + 100)))
    with database.transaction(fresh_url) as beats, ThreadPoolExecutor(1) as thread:
        fetch_all(beats, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR NO KEY UPDATE", {"id": run["id"]})
        queue.write_log(beats, {lease_of(run): log[:LINES_MOST]})
        ended = thread.submit(ended_with, fresh_url, lease_of(run), log[LINES_MOST:])
        wait_for_a_waiting_session(fresh_url)
        beats.commit()
        ended.result()
    with database.transaction(fresh_url) as connection:
        assert texts(connection, run["id"]) == [line.text for line in log[100:]]


def ended_with(url: str, lease: Lease, log: Sequence[LogLine]) -> None:
    with database.transaction(url) as connection:
        assert queue.succeed(connection, [Done(lease, None)], {lease: log})


def test_the_log_of_another_run_is_not_shortened(connection: PgConnection) -> None:
    run, other = running(connection), running(connection)
    for one in (run, other):
        insert_lines(connection, one["id"], range(1, LINES_MOST + 1))
    queue.write_log(connection, {lease_of(run): lines("new")})
    assert (queue.left_out(connection, run["id"]), queue.left_out(connection, other["id"])) == (1, 0)


def test_each_run_has_its_own_share_of_lines(connection: PgConnection) -> None:
    runs = [running(connection) for _ in range(2)]
    for run in runs:
        insert_lines(connection, run["id"], range(1, LINES_MOST))
    queue.write_log(connection, {lease_of(run): lines("new") for run in runs})
    assert [queue.left_out(connection, run["id"]) for run in runs] == [0, 0]


def test_nobody_takes_the_run_while_its_lines_are_written(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run = running(connection)
    with database.transaction(fresh_url) as connection, database.transaction(fresh_url) as other:
        queue.write_log(connection, {lease_of(run): lines("one")})
        free = "SELECT id FROM rowcall.job_runs WHERE id = %(id)s FOR NO KEY UPDATE SKIP LOCKED"
        assert fetch_all(other, free, run) == []


def test_a_page_ends_by_its_bytes_and_has_at_least_one_line(connection: PgConnection) -> None:
    run = running(connection)
    insert_lines(connection, run["id"], range(1, 4), "x" * 1000)
    pages = [queue.log_page(connection, run["id"], after, 50, page_bytes=2500) for after in (0, 2)]
    assert [([line["line_no"] for line in page], more) for page, more in pages] == [([1, 2], True), ([3], False)]
    one, more = queue.log_page(connection, run["id"], 0, 50, page_bytes=1)
    assert (len(one), more) == (1, True)


def test_a_retry_keeps_the_log_and_a_clone_has_none(connection: PgConnection) -> None:
    run = running(connection)
    queue.give_up(connection, lease_of(run), FAILURE, lines("it breaks"))
    copy = queue.clone(connection, run["id"], OPERATOR)
    queue.retry(connection, run["id"], OPERATOR)
    assert (texts(connection, run["id"]), texts(connection, copy.run_id)) == (["it breaks"], [])


def test_one_statement_writes_a_bounded_portion_but_at_least_one_run(connection: PgConnection) -> None:
    one, two, three = (Lease("worker-1", run_id, 1) for run_id in (1, 2, 3))
    half = lines("x" * (PORTION_CHARACTERS // 2))
    shares = [[*portion] for portion in portions({one: half * 3, two: half, three: half})]
    assert shares == [[one], [two, three]]


@pytest.mark.parametrize("text", ["", "a\nb", "tab\there", "\x1b[31mred", "half \\ud800 \\u0000", "emoji \U0001f600"])
def test_any_text_comes_back_as_it_was_logged(connection: PgConnection, text: str) -> None:
    lease = lease_of(running(connection))
    queue.write_log(connection, {lease: lines(text)})
    assert texts(connection, lease.run_id) == [text]
