"""The completer: how the end of an attempt changes its run, and what happens to results that cannot be written yet."""

from __future__ import annotations

import threading
from datetime import datetime

import psycopg2
import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import CancelRequested
from rowcall.job_types import load_catalogue
from rowcall.queue import Claimed, ClaimRequest
from rowcall.status import Status
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.claims.lanes import Lanes
from rowcall_worker.runtime.claims.stranded import Steps, Stranded
from rowcall_worker.runtime.claims.suspects import Suspects
from rowcall_worker.runtime.completer import Completer
from rowcall_worker.runtime.connection import Link, Outage
from rowcall_worker.runtime.in_flight import InFlight
from rowcall_worker.runtime.producer import Producer
from tests.support.logged import logged
from tests.support.processes import LIMIT_SECONDS, wait_until
from tests.support.rows import WORKER, row_of, run_in


@pytest.fixture
def completer() -> Completer:
    return Completer(InFlight(4), load_catalogue(None))


WAITS_FOR_A_ROW = """
SELECT xact_start FROM pg_stat_activity WHERE application_name ~ 'releasing' AND wait_event_type = 'Lock'
"""


def in_flight(completer: Completer, connection: PgConnection, **columns: str) -> InFlightRun:
    """Return a run of this worker, in flight."""
    row = run_in(connection, Status.RUNNING, **columns)
    claimed = Claimed(row["id"], row["lease_no"], "noop", {}, row["attempts"], row["max_attempts"], None)
    run = InFlightRun(WORKER, claimed, deadline=0)
    completer.in_flight.accept(0, [run])
    return run


@pytest.fixture
def two(completer: Completer, fresh_url: str) -> tuple[InFlightRun, InFlightRun]:
    """Return two committed runs of this worker."""
    with database.transaction(fresh_url) as connection:
        return in_flight(completer, connection), in_flight(completer, connection)


def ended(completer: Completer, connection: PgConnection, result: AttemptResult, **columns: str) -> InFlightRun:
    """Return a run of this worker whose attempt has ended with this result."""
    run = in_flight(completer, connection, **columns)
    completer.in_flight.settle(run, result)
    return run


def outcomes(connection: PgConnection, run: InFlightRun) -> list[str]:
    return [attempt["outcome"] for attempt in queue.attempts_of(connection, run.lease.run_id)]


@pytest.mark.parametrize(
    ("columns", "becomes", "outcome"),
    [
        ({"cancel_requested_at": "now()"}, Status.CANCELLED, "cancelled"),
        ({}, Status.FAILED, "fail"),
        ({"attempts": "5"}, Status.DEAD, "give up"),
    ],
    ids=["asked", "not asked", "not asked at the last attempt"],
)
def test_a_handler_that_stops_as_if_cancelled_has_failed_unless_somebody_asked_for_it(
    completer: Completer, connection: PgConnection, columns: dict[str, str], becomes: Status, outcome: str
) -> None:
    run = ended(completer, connection, AttemptResult.of_error(CancelRequested(7)), **columns)
    assert completer.write_apart(connection, completer.in_flight.collect()) == []
    assert (completer.in_flight.tally, row_of(connection, run.lease.run_id)["status"]) == ({becomes: 1}, becomes)
    assert outcomes(connection, run) == [outcome]
    assert completer.in_flight.empty


def test_ends_that_cannot_be_written_are_kept_and_what_was_written_before_is_not_written_again(
    completer: Completer, connection: PgConnection, module_url: str
) -> None:
    failed = ended(completer, connection, AttemptResult.of_error(ValueError("it broke")))
    finished = ended(completer, connection, AttemptResult(finished=True))
    succeeded = ended(completer, connection, AttemptResult("7"))
    collected = completer.in_flight.collect()
    closed = database.connect(module_url)
    closed.close()
    with pytest.raises(psycopg2.InterfaceError):
        completer.write_apart(closed, collected)
    completer.keep(collected)
    kept = completer.in_flight.collect()
    assert finished not in kept
    assert kept == [failed, succeeded]
    assert completer.write_apart(connection, kept) == [succeeded]
    assert outcomes(connection, failed) == ["fail"]


def test_a_success_whose_lease_was_lost_is_logged_and_not_counted(
    completer: Completer, connection: PgConnection
) -> None:
    one, other = (ended(completer, connection, AttemptResult("7")) for _ in range(2))
    with logged() as lines:
        completer.written(completer.in_flight.collect(), {one.lease.run_id})
    assert [(line["event"], line["run_id"]) for line in lines] == [("lease lost", other.lease.run_id)]
    assert completer.in_flight.tally == {Status.SUCCEEDED: 1}
    assert completer.in_flight.empty


def test_a_stopping_worker_unclaims_what_it_has_not_begun_and_releases_what_it_has(
    completer: Completer, fresh_url: str, two: tuple[InFlightRun, InFlightRun]
) -> None:
    waiting, begun = two
    link = Link(fresh_url, "test", Outage())
    completer.unclaim(link, [waiting], 0)
    completer.release(link, [begun], "stopping")
    connection = link.get()
    rows = [row_of(connection, run.lease.run_id) for run in (waiting, begun)]
    assert [(row["status"], row["attempts"]) for row in rows] == [("queued", 1), ("queued", 2)]
    assert (outcomes(connection, waiting), outcomes(connection, begun)) == ([], ["release"])
    link.close()
    assert not completer.in_flight.runs
    assert not completer.in_flight.settle(begun, AttemptResult("too late"))


def test_a_stopping_worker_tries_again_to_release_a_run_whose_row_is_locked_for_a_moment(
    completer: Completer, fresh_url: str, two: tuple[InFlightRun, InFlightRun]
) -> None:
    locked, free = two
    link = Link(fresh_url, "releasing", Outage())
    releasing = threading.Thread(target=lambda: completer.release(link, [locked, free], "stopping"))
    with database.transaction(fresh_url) as holder, database.transaction(fresh_url) as watcher:
        watcher.autocommit = True
        database.fetch_all(holder, f"SELECT FROM rowcall.job_runs WHERE id = {locked.lease.run_id} FOR UPDATE")
        releasing.start()
        tries: set[datetime] = set()

        def tried_again() -> bool:
            tries.update(row["xact_start"] for row in database.fetch_all(watcher, WAITS_FOR_A_ROW))
            return len(tries) > 1 or not releasing.is_alive()

        wait_until(tried_again, "the row is tried again")
    releasing.join()
    with database.transaction(fresh_url) as connection:
        rows = [row_of(connection, run.lease.run_id) for run in (locked, free)]
    assert [row["status"] for row in rows] == ["queued", "queued"]
    link.close()


TRIED_TO_UNCLAIM = """
SELECT pid FROM pg_stat_activity WHERE application_name ~ 'unclaiming' AND state = 'idle' AND query ~ 'FROM rowcall.job'
"""


def test_a_stopping_worker_tries_again_to_unclaim_a_run_whose_row_is_locked_for_a_moment(
    completer: Completer, fresh_url: str, two: tuple[InFlightRun, InFlightRun]
) -> None:
    locked, free = two
    link = Link(fresh_url, "unclaiming", Outage())
    unclaiming = threading.Thread(target=lambda: completer.unclaim(link, [locked, free], LIMIT_SECONDS))
    with database.transaction(fresh_url) as holder, database.transaction(fresh_url) as watcher, logged() as lines:
        watcher.autocommit = True
        database.fetch_all(holder, f"SELECT FROM rowcall.job_runs WHERE id = {locked.lease.run_id} FOR UPDATE")
        unclaiming.start()
        wait_until(lambda: database.fetch_all(watcher, TRIED_TO_UNCLAIM), "the rows are tried once")
    unclaiming.join()
    with database.transaction(fresh_url) as connection:
        rows = [row_of(connection, run.lease.run_id) for run in (locked, free)]
    assert [(row["status"], row["attempts"]) for row in rows] == [("queued", 1), ("queued", 1)]
    assert not lines
    link.close()


def test_a_stopping_worker_does_not_try_again_to_unclaim_a_run_whose_lease_is_lost(
    completer: Completer, fresh_url: str, two: tuple[InFlightRun, InFlightRun]
) -> None:
    lost, ours = two
    link = Link(fresh_url, "unclaiming", Outage())
    with database.transaction(fresh_url) as connection:
        database.fetch_all(
            connection, f"UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = {lost.lease.run_id}"
        )
    with logged() as lines:
        completer.unclaim(link, [lost, ours], LIMIT_SECONDS)
    assert [(line["event"], line["run_id"]) for line in lines] == [("lease lost", lost.lease.run_id)]
    assert not completer.in_flight.runs
    with database.transaction(fresh_url) as connection:
        rows = [row_of(connection, run.lease.run_id) for run in (lost, ours)]
    assert [row["status"] for row in rows] == ["running", "queued"]
    link.close()


def test_what_a_stopping_worker_cannot_return_is_named(
    completer: Completer,
    fresh_url: str,
    two: tuple[InFlightRun, InFlightRun],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rowcall_worker.runtime.completer.RELEASE_SECONDS", 0)
    waiting, begun = two
    link = Link(fresh_url, "test", Outage())
    with database.transaction(fresh_url) as holder, logged() as lines:
        database.fetch_all(holder, "SELECT FROM rowcall.job_runs FOR UPDATE")
        completer.unclaim(link, [waiting], 0)
        completer.release(link, [begun], "stopping")
    link.close()
    assert [(line["event"], line["run_id"]) for line in lines] == [
        ("run left until its lease expires", waiting.lease.run_id),
        ("run left until its lease expires", begun.lease.run_id),
    ]
    assert "locked" in lines[1]["reason"]


# Short as text, but PostgreSQL writes each of its numbers with 309 digits.
GROWS = "[" + ", ".join(["1e308"] * 1000) + "]"


def test_one_result_that_the_database_refuses_ends_its_run_and_holds_up_no_other(
    completer: Completer, fresh_url: str
) -> None:
    with database.transaction(fresh_url) as connection:
        good, bad, other = (ended(completer, connection, AttemptResult(value)) for value in ("7", GROWS, "8"))
    request = ClaimRequest({"noop": 60}, 0)
    link = Link(fresh_url, "test", Outage())
    in_flight = completer.in_flight
    known = (Lanes(), 60, True, False, Stranded(in_flight, Steps()), Suspects(in_flight, 1.0))
    producer = Producer(in_flight, completer, link, WORKER, request, *known)
    in_flight.close()
    producer.run()
    with database.transaction(fresh_url) as connection:
        rows = [row_of(connection, run.lease.run_id) for run in (good, bad, other)]
    assert [row["status"] for row in rows] == ["succeeded", "dead", "succeeded"]
    assert rows[1]["last_error"].startswith("the result cannot be stored: ")
    assert completer.in_flight.empty
