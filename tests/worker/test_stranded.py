"""Runs of a lost claim are unclaimed, but never runs that this process has, or is about to have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.queue import Claimed, ClaimRequest
from rowcall.queue.claims.lanes import BEGINNING, Lane, Position
from rowcall.status import Status
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.runtime.claims.stranded import Steps, Stranded
from rowcall_worker.runtime.in_flight import InFlight
from tests.support.rows import row_of, run_in

WORKER = "worker-1"
LANE = Lane("default", 0)


@pytest.fixture
def connection(fresh_url: str) -> Iterator[PgConnection]:
    with database.transaction(fresh_url) as connection:
        yield connection


@pytest.fixture
def stranded() -> Stranded:
    return Stranded(InFlight(threads=4), Steps())


def claimed(connection: PgConnection) -> Claimed:
    """Return a run that this worker has just claimed."""
    run_in(connection, Status.QUEUED, attempts="0")
    return queue.claim(connection, WORKER, ClaimRequest({"noop": 60.0}, 1)).claimed[0]


def accept(stranded: Stranded, run: Claimed) -> InFlightRun:
    in_hand = InFlightRun(WORKER, run, elapsed() + 60)
    stranded.in_flight.accept(0, [in_hand])
    return in_hand


def look_twice(stranded: Stranded, connection: PgConnection) -> None:
    """Look twice: the second look decides about what the first one found."""
    for _ in range(2):
        stranded.give_back(connection, WORKER)


def status(connection: PgConnection, run: Claimed) -> str:
    return str(row_of(connection, run.run_id)["status"])


def test_what_nobody_has_in_hand_goes_back_as_if_it_had_not_been_claimed(
    connection: PgConnection, stranded: Stranded
) -> None:
    run, kept = claimed(connection), claimed(connection)
    accept(stranded, kept)
    stranded.lost([LANE])
    look_twice(stranded, connection)
    row = row_of(connection, run.run_id)
    assert (row["status"], row["attempts"]) == ("queued", 0)
    assert status(connection, kept) == "running"


def test_nothing_goes_back_while_no_answer_was_lost(connection: PgConnection, stranded: Stranded) -> None:
    run = claimed(connection)
    look_twice(stranded, connection)
    assert (status(connection, run), stranded.due_in) == ("running", float("inf"))


def test_what_the_other_producer_is_about_to_have_in_hand_stays(connection: PgConnection, stranded: Stranded) -> None:
    stranded.other.step()
    run = claimed(connection)
    stranded.lost([LANE])
    look_twice(stranded, connection)
    assert status(connection, run) == "running"
    accept(stranded, run)
    stranded.other.step()
    look_twice(stranded, connection)
    assert status(connection, run) == "running"


def test_a_lease_that_was_given_up_with_a_handler_at_work_stays(connection: PgConnection, stranded: Stranded) -> None:
    run = claimed(connection)
    in_hand = accept(stranded, run)
    stranded.in_flight.given_up.append(in_hand.lease)
    stranded.in_flight.drop([in_hand])
    stranded.lost([LANE])
    look_twice(stranded, connection)
    assert status(connection, run) == "running"


def test_what_another_worker_has_stays(connection: PgConnection, stranded: Stranded) -> None:
    run_in(connection, Status.RUNNING, locked_by="'worker-2'", attempts="1")
    stranded.lost([LANE])
    look_twice(stranded, connection)
    assert queue.held(connection, WORKER, [LANE]) == []
    assert len(queue.held(connection, "worker-2", [LANE])) == 1


def test_it_looks_from_where_the_first_of_the_lost_claims_began(connection: PgConnection, stranded: Stranded) -> None:
    run = claimed(connection)
    behind = Position(row_of(connection, run.run_id)["run_at"], run.run_id + 1)
    stranded.lost([Lane("default", 0, behind)])
    stranded.lost([Lane("default", 0, BEGINNING)])
    stranded.lost([Lane("default", 0, behind)])
    look_twice(stranded, connection)
    assert status(connection, run) == "queued"


def test_a_worker_that_ends_waits_for_nothing_and_returns_it_at_once(
    connection: PgConnection, stranded: Stranded
) -> None:
    run, in_hand = claimed(connection), claimed(connection)
    accept(stranded, in_hand)
    assert not stranded.looking
    stranded.lost([LANE])
    assert stranded.looking
    stranded.finish(connection, WORKER)
    assert (status(connection, run), status(connection, in_hand)) == (Status.QUEUED, Status.RUNNING)
