"""The statements of a hand-over: a lease passes to a message, and one consumer begins the run under it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection, Row
from rowcall.queue import Begun, Lease
from rowcall.queue.claims.handover import GIVEN_BACK_SECONDS, holder_of
from rowcall.status import Status
from tests.support.rows import WORKER, row_of, run_in

HOLDER = holder_of("mail", "shop.tasks.send")
ONE, OTHER = "consumer host:1:a", "consumer host:2:b"
LEASES = {"noop": 60.0}


def begin(connection: PgConnection, run: Row, consumer: str = ONE, repeated: bool = False) -> Begun | None:
    return queue.begin(connection, run["id"], run["lease_no"], consumer, LEASES, repeated)


def handed_over(connection: PgConnection, **columns: str) -> Row:
    return run_in(connection, Status.RUNNING, **{"locked_by": f"'{HOLDER}'", **columns})


def give_back(connection: PgConnection, run: Row) -> Status | None:
    return queue.give_back(connection, Lease(HOLDER, run["id"], run["lease_no"]), "not handed over here")


def test_a_lease_passes_to_the_message_and_nothing_else_changes(connection: PgConnection) -> None:
    run, alike = (run_in(connection, Status.RUNNING) for _ in range(2))
    assert queue.hand_over(connection, {Lease(WORKER, run["id"], run["lease_no"]): HOLDER}) == {run["id"]}
    assert row_of(connection, run["id"]) == {
        **run,
        "locked_by": HOLDER,
        "updated_at": row_of(connection, run["id"])["updated_at"],
    }
    assert row_of(connection, alike["id"]) == alike


@pytest.mark.parametrize("taken", [{"locked_by": f"'{ONE}'"}, {"lease_no": "4"}], ids=["begun", "another lease"])
def test_a_run_that_was_begun_or_lost_meanwhile_is_not_handed_over(
    connection: PgConnection, taken: dict[str, str]
) -> None:
    run = run_in(connection, Status.RUNNING, **taken)
    assert queue.hand_over(connection, {Lease(WORKER, run["id"], 3): HOLDER}) == set()
    assert row_of(connection, run["id"]) == run


@pytest.mark.parametrize("holder", [HOLDER, WORKER], ids=["after the worker let go", "before that"])
def test_a_message_begins_its_run_under_the_lease_of_the_type(connection: PgConnection, holder: str) -> None:
    run, alike = (handed_over(connection, locked_by=f"'{holder}'") for _ in range(2))
    begun = begin(connection, run)
    assert begun is not None
    assert not begun.cancel_requested
    claimed = begun.claimed
    assert (claimed.run_id, claimed.lease_no, claimed.attempt) == (run["id"], run["lease_no"], run["attempts"])
    assert claimed.waited == (row_of(connection, run["id"])["started_at"] - run["run_at"]).total_seconds()
    row = row_of(connection, run["id"])
    assert row["locked_by"] == ONE
    assert row["locked_until"] - row["started_at"] == timedelta(seconds=LEASES["noop"])
    assert row_of(connection, alike["id"]) == alike


@pytest.mark.parametrize("other", [ONE, OTHER], ids=["the same consumer", "another one"])
def test_the_second_of_two_messages_begins_nothing(connection: PgConnection, other: str) -> None:
    run = handed_over(connection)
    assert begin(connection, run)
    before = row_of(connection, run["id"])
    assert begin(connection, run, other) is None
    assert row_of(connection, run["id"]) == before


def test_a_consumer_can_repeat_its_own_beginning_whose_commit_was_not_confirmed(connection: PgConnection) -> None:
    run = handed_over(connection)
    assert begin(connection, run)
    assert begin(connection, run, ONE, repeated=True)
    assert begin(connection, run, OTHER, repeated=True) is None


@pytest.mark.parametrize(
    "columns",
    [{"lease_no": "4"}, {"job_type": "'weigh'"}],
    ids=["the lease is over", "a worker performs the type"],
)
def test_a_message_that_is_not_for_this_lease_begins_nothing(connection: PgConnection, columns: dict[str, str]) -> None:
    run = handed_over(connection, **columns)
    assert begin(connection, {**run, "lease_no": 3}) is None
    assert row_of(connection, run["id"]) == run


def test_a_message_of_a_run_that_is_not_running_begins_nothing(connection: PgConnection) -> None:
    for status in set(Status) - {Status.RUNNING}:
        run = run_in(connection, status)
        assert begin(connection, run) is None
        assert row_of(connection, run["id"]) == run


def test_a_run_that_an_operator_wants_to_cancel_is_begun_and_says_so(connection: PgConnection) -> None:
    begun = begin(connection, handed_over(connection, cancel_requested_at="now()"))
    assert begun is not None
    assert begun.cancel_requested


def test_of_two_consumers_that_begin_at_once_one_begins(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        run = handed_over(connection)
    begun: list[Begun | None] = []

    def second() -> None:
        with database.transaction(module_url) as other:
            begun.append(begin(other, run, OTHER))

    with database.transaction(module_url) as connection:
        assert begin(connection, run)
        thread = threading.Thread(target=second)
        thread.start()
    thread.join()
    assert begun == [None]


def test_a_lost_message_costs_no_attempt_and_makes_no_suspect(connection: PgConnection) -> None:
    run = handed_over(connection, attempts="1", max_attempts="1", locked_until="now() - interval '1 second'")
    assert queue.expire(connection, run["id"], run["lease_no"])
    row = row_of(connection, run["id"])
    assert (row["status"], row["attempts"], row["suspect"]) == (Status.QUEUED, 0, 0)
    assert (row["error_type"], row["finished_at"], row["lease_no"]) == ("MessageLost", None, run["lease_no"])
    assert row["run_at"] == run["run_at"]  # it has been due all the time, for the alert
    [attempt] = queue.attempts_of(connection, run["id"])
    assert (attempt["outcome"], attempt["worker"], attempt["attempt"]) == ("expire", HOLDER, 1)


def test_the_lease_of_a_run_that_was_begun_expires_as_any_other(connection: PgConnection) -> None:
    run = handed_over(connection, locked_by=f"'{ONE}'", locked_until="now() - interval '1 second'")
    assert queue.expire(connection, run["id"], run["lease_no"])
    row = row_of(connection, run["id"])
    assert (row["status"], row["attempts"], row["suspect"]) == (Status.FAILED, run["attempts"], 1)


def test_a_run_that_a_consumer_gives_back_is_due_again_and_has_lost_no_attempt(connection: PgConnection) -> None:
    run, alike = (handed_over(connection, attempts="1", started_at="now()") for _ in range(2))
    assert give_back(connection, run) is Status.QUEUED
    row = row_of(connection, run["id"])
    assert (row["status"], row["attempts"], row["suspect"], row["locked_by"]) == (Status.QUEUED, 0, 0, None)
    assert row["run_at"] - row["updated_at"] == timedelta(seconds=GIVEN_BACK_SECONDS)
    [attempt] = queue.attempts_of(connection, run["id"])
    assert (attempt["outcome"], attempt["worker"], attempt["error_type"]) == ("snooze", HOLDER, "GivenBack")
    assert attempt["error"] == "not handed over here"
    assert row_of(connection, alike["id"]) == alike


@pytest.mark.parametrize(
    "columns",
    [{"lease_no": "4"}, {"locked_by": f"'{OTHER}'"}, {"locked_by": f"'{WORKER}'"}],
    ids=["the lease is over", "a consumer has begun it", "a worker performs it"],
)
def test_only_a_run_whose_message_waits_is_given_back(connection: PgConnection, columns: dict[str, str]) -> None:
    run = handed_over(connection, **columns)
    assert give_back(connection, {**run, "lease_no": 3}) is None
    assert row_of(connection, run["id"]) == run


def test_a_run_that_is_given_back_after_a_request_to_cancel_it_is_cancelled(connection: PgConnection) -> None:
    run = handed_over(connection, cancel_requested_at="now()")
    assert give_back(connection, run) is Status.CANCELLED
