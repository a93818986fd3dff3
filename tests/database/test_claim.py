"""Claim: who gets which run, and in which order."""

from __future__ import annotations

import pytest

from shared import database, queue
from shared.database import PgConnection, fetch_all
from shared.queue import Wanted
from shared.queue.operate import Admin
from shared.status import Status
from tests.making import WORKER, row_of, run_in

NOOP = {"noop": 60.0}


def claimed_ids(connection: PgConnection, limit: int = 10, queues: list[str] | None = None) -> list[int]:
    return [run.run_id for run in queue.claim(connection, "worker-2", Wanted(NOOP, limit, queues)).claimed]


def test_a_claim_counts_the_attempt_and_opens_a_lease_of_the_types_length(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED)
    [claimed] = queue.claim(connection, "worker-2", Wanted({"noop": 77.0}, 10)).claimed
    now = row_of(connection, run["id"])
    assert (claimed.attempt, claimed.lease_no, claimed.payload) == (3, 4, {})
    assert (now["attempts"], now["lease_no"], now["locked_by"]) == (3, 4, "worker-2")
    assert (now["locked_until"] - now["started_at"]).total_seconds() == 77


def test_what_is_not_due_waits(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, run_at="now() + interval '1 second'")
    assert claimed_ids(connection) == []


def test_the_urgent_first_then_the_longest_due_then_the_first_asked_for(connection: PgConnection) -> None:
    late = run_in(connection, Status.QUEUED, priority="1", run_at="now() - interval '9 hours'")
    second = run_in(connection, Status.QUEUED)
    third = run_in(connection, Status.FAILED)
    first = run_in(connection, Status.QUEUED, run_at="now() - interval '2 hours'")
    expected = [run["id"] for run in (first, second, third, late)]
    assert claimed_ids(connection, limit=3) + claimed_ids(connection, limit=3) == expected


def test_the_queue_that_waited_longest_goes_first_so_none_starves(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, queue="'aaa'")
    waiting = run_in(connection, Status.QUEUED, queue="'zzz'", run_at="now() - interval '1 hour'")
    assert claimed_ids(connection, limit=1) == [waiting["id"]]


def test_only_the_queues_that_were_named_are_served(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, queue="'mail'")
    mine = run_in(connection, Status.QUEUED, queue="'reports'")
    assert claimed_ids(connection, queues=["reports"]) == [mine["id"]]


def test_a_paused_queue_is_left_alone(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, queue="'mail'")
    fetch_all(connection, "INSERT INTO queues (name, paused_at) VALUES ('mail', now())")
    assert claimed_ids(connection) == []


def test_an_unknown_type_is_left_for_a_newer_worker(connection: PgConnection) -> None:
    unknown = run_in(connection, Status.QUEUED, job_type="'from_the_future'")
    known = run_in(connection, Status.QUEUED)
    assert claimed_ids(connection) == [known["id"]]
    assert row_of(connection, unknown["id"]) == unknown


def test_two_workers_at_once_get_different_runs(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        ids = [run_in(making, Status.QUEUED)["id"] for _ in range(4)]
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        assert claimed_ids(one, limit=2) == ids[:2]
        assert claimed_ids(other, limit=4) == ids[2:]


@pytest.mark.parametrize(
    ("columns", "becomes"),
    [
        ({}, Status.FAILED),
        ({"attempts": "5"}, Status.DEAD),
        ({"cancel_requested_at": "now()"}, Status.CANCELLED),
    ],
)
def test_a_claim_meets_the_leases_that_ran_out(
    connection: PgConnection, columns: dict[str, str], becomes: Status
) -> None:
    run = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'", **columns)
    met = queue.claim(connection, "worker-2", Wanted(NOOP, 10))
    assert (met.claimed, met.expired) == ([], {run["id"]: becomes})
    now = row_of(connection, run["id"])
    assert (now["status"], now["error_type"]) == (becomes, "LeaseExpired")
    assert f"lease of {WORKER} ran out" in now["last_error"]
    assert [kept["outcome"] for kept in queue.attempts_of(connection, run["id"])] == ["expire"]


def test_a_run_whose_lease_ran_out_is_taken_over_at_the_next_claim(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'")
    queue.claim(connection, "worker-2", Wanted(NOOP, 10))
    assert claimed_ids(connection) == [run["id"]]
    assert row_of(connection, run["id"])["lease_no"] == run["lease_no"] + 1


def test_five_steps_that_break_owner_and_attempts_as_a_fence_do_not_break_the_lease_number(
    connection: PgConnection,
) -> None:
    admin = Admin("a test")
    run_id = queue.enqueue(connection, "noop", {}).run_id
    [zombie] = queue.claim(connection, WORKER, Wanted(NOOP, 1)).claimed
    queue.force_cancel(connection, run_id, zombie.lease_no, admin)
    queue.retry(connection, run_id, admin)
    [again] = queue.claim(connection, WORKER, Wanted(NOOP, 1)).claimed
    assert (again.attempt, again.lease_no) == (zombie.attempt, zombie.lease_no + 1)
    stale = queue.Ending(WORKER, run_id, zombie.lease_no, zombie.attempt)
    assert queue.fail(connection, stale, queue.Failure("stale", "Stale"), delay=0) is None
    assert queue.succeed(connection, WORKER, [queue.Done(run_id, zombie.lease_no, None)]) == set()
    assert row_of(connection, run_id)["status"] == Status.RUNNING
