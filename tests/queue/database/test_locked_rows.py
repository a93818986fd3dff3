"""A run whose row is locked delays no other run, and is not taken for a lost one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg2.errors import LockNotAvailable

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue import Lease, LeaseRenewal
from rowcall.status import Status
from tests.support.rows import WORKER, row_of, run_in

RENEWED, SKIPPED = LeaseRenewal(True, cancel_requested=False), LeaseRenewal(False, cancel_requested=False)

LOCKS = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE")


@pytest.fixture
def running(module_url: str) -> Iterator[tuple[PgConnection, list[Lease]]]:
    """Yield two committed runs of one worker, and a connection in autocommit that waits for no lock."""
    connection = database.connect(module_url)
    connection.autocommit = True
    fetch_all(connection, "SET lock_timeout = 1")
    rows = [run_in(connection, Status.RUNNING, locked_until="now() + interval '10 seconds'") for _ in range(2)]
    yield connection, [Lease(WORKER, row["id"], row["lease_no"]) for row in rows]
    fetch_all(connection, "DELETE FROM rowcall.job_runs")
    connection.close()


def lock(connection: PgConnection, lease: Lease, how: str) -> None:
    fetch_all(connection, f"SELECT id FROM rowcall.job_runs WHERE id = %(id)s {how}", {"id": lease.run_id})


def seconds_left(connection: PgConnection, lease: Lease) -> float:
    sql = "SELECT extract(epoch FROM locked_until - now())::float8 FROM rowcall.job_runs WHERE id = %(id)s"
    left: float = fetch_value(connection, sql, {"id": lease.run_id})
    return left


@pytest.mark.parametrize("how", LOCKS)
def test_a_heartbeat_renews_the_neighbours_of_a_locked_row_and_does_not_call_it_lost(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection, how: str
) -> None:
    worker, [locked, other] = running
    lock(connection, locked, how)
    assert queue.heartbeat(worker, {locked: 60, other: 60}) == {locked: SKIPPED, other: RENEWED}
    assert seconds_left(worker, locked) < 10 < seconds_left(worker, other)
    connection.rollback()
    assert queue.heartbeat(worker, {locked: 60}) == {locked: RENEWED}


def test_a_lost_lease_is_missing_from_the_answer_whether_its_row_is_locked_or_not(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection
) -> None:
    worker, [one, other] = running
    for lease in (one, other):
        assert queue.give_up(worker, lease, queue.Failure("it broke", "ValueError"))
    lock(connection, one, "FOR UPDATE")
    assert queue.heartbeat(worker, {one: 60, other: 60}) == {}


def test_a_locked_row_is_told_to_be_cancelled_too(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection
) -> None:
    worker, [locked, _] = running
    fetch_all(
        worker, "UPDATE rowcall.job_runs SET cancel_requested_at = now() WHERE id = %(id)s", {"id": locked.run_id}
    )
    lock(connection, locked, "FOR UPDATE")
    assert queue.heartbeat(worker, {locked: 60}) == {locked: LeaseRenewal(False, cancel_requested=True)}


@pytest.mark.parametrize("how", LOCKS)
def test_progress_is_shown_of_all_but_a_locked_row_and_keeps_what_was_saved(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection, how: str
) -> None:
    worker, [locked, other] = running
    for lease in (locked, other):
        assert queue.save(worker, lease, "7")
    lock(connection, locked, how)
    stale = other._replace(lease_no=other.lease_no + 1)
    foreign = Lease("worker-2", other.run_id, other.lease_no)
    half = '{"share": 0.5}'
    assert queue.show_progress(worker, dict.fromkeys((locked, other, stale), half)) == {other}
    assert queue.show_progress(worker, {foreign: half}) == set()
    assert row_of(worker, locked.run_id)["progress"] == {"saved": 7}
    assert row_of(worker, other.run_id)["progress"] == {"saved": 7, "share": 0.5}


def test_the_end_of_a_step_renews_its_lease_from_that_moment_and_keeps_it(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection
) -> None:
    worker, [lease, _] = running
    fetch_all(connection, "SELECT pg_sleep(0.2)")  # the transaction is older than the renewal, by the server's clock
    assert queue.renew(connection, lease, 60)
    assert queue.heartbeat(worker, {lease: 60}) == {lease: SKIPPED}
    with pytest.raises(LockNotAvailable):
        queue.force_cancel(worker, lease.run_id, lease.lease_no, Operator("a test"))
    assert seconds_left(connection, lease) > 60.1
    assert queue.renew(connection, lease, 5)
    assert seconds_left(connection, lease) > 60.1


def test_two_steps_of_one_handler_hold_their_lease_without_waiting_for_each_other(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection
) -> None:
    worker, [lease, _] = running
    lock(connection, lease, "FOR SHARE")
    assert queue.renew(worker, lease, 60)
    assert seconds_left(worker, lease) < 10


def test_a_step_that_could_not_renew_its_lease_keeps_it_all_the_same(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection, module_url: str
) -> None:
    worker, [lease, _] = running
    with database.transaction(module_url) as another_step:
        lock(another_step, lease, "FOR SHARE")
        assert queue.renew(connection, lease, 60)
    with pytest.raises(LockNotAvailable):
        queue.force_cancel(worker, lease.run_id, lease.lease_no, Operator("a test"))


@pytest.mark.parametrize("wrong", ["lease_no", "worker", "status"])
def test_a_step_under_a_lost_lease_renews_nothing(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection, wrong: str
) -> None:
    worker, [lease, other] = running
    if wrong == "status":
        assert queue.give_up(worker, lease, queue.Failure("it broke", "ValueError"))
    elif wrong == "worker":
        lease = lease._replace(worker="worker-2")
    else:
        lease = lease._replace(lease_no=lease.lease_no + 1)
    assert not queue.renew(connection, lease, 60)
    lock(connection, other, "FOR SHARE")
    assert not queue.renew(worker, other._replace(lease_no=9), 60)


def test_the_locked_of_many_leases_are_told_apart(
    running: tuple[PgConnection, list[Lease]], connection: PgConnection
) -> None:
    worker, [locked, other] = running
    lock(connection, locked, "FOR SHARE")
    assert queue.unlocked(worker, [locked, other]) == {other}
    assert queue.owned(worker, [locked, other._replace(lease_no=other.lease_no - 1)]) == {locked}
