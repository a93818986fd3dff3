"""Suspects: a run whose lease expired may have killed its worker, and is claimed apart from other runs."""

from __future__ import annotations

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import ClaimRequest, Failure, Lease, Suspect
from rowcall.status import Status
from tests.support.rows import row_of, run_in

OPERATOR = Operator("a test")
REQUEST = ClaimRequest({"noop": 60.0}, 10)
WORKER = "worker-2"


def suspect(connection: PgConnection, leases: int = 1, **columns: str) -> int:
    """Insert a due run that has cost this many leases, and return its id."""
    run_id: int = run_in(connection, Status.FAILED, suspect=str(leases), **columns)["id"]
    return run_id


def claim_suspect(connection: PgConnection, request: ClaimRequest = REQUEST, alone: bool = False) -> Suspect:
    return queue.claim_suspect(connection, WORKER, request, alone)


def taken(connection: PgConnection, request: ClaimRequest = REQUEST, alone: bool = False) -> int | None:
    claimed = claim_suspect(connection, request, alone).claimed
    return None if claimed is None else claimed.run_id


def lease_of(connection: PgConnection, run_id: int) -> Lease:
    row = row_of(connection, run_id)
    return Lease(row["locked_by"], run_id, row["lease_no"])


def test_every_way_to_end_an_expired_lease_makes_its_run_a_suspect(connection: PgConnection) -> None:
    runs = [run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'") for _ in range(3)]
    queue.expire(connection, runs[0]["id"], runs[0]["lease_no"])
    queue.claim(connection, WORKER, ClaimRequest({"noop": 60.0}, 1))
    queue.sweep(connection, REQUEST)
    assert [row_of(connection, run["id"])["suspect"] for run in runs] == [1, 1, 1]


def test_claims_leave_a_suspect_alone_with_and_without_a_limit(connection: PgConnection) -> None:
    suspect(connection)
    suspect(connection, queue="'mail'")
    queue.limit_queue(connection, "mail", 5, OPERATOR)
    result = queue.exchange(connection, WORKER, [], REQUEST)
    assert result.claimed == []


def test_of_many_suspects_the_one_that_has_waited_longest_is_claimed_and_no_other(connection: PgConnection) -> None:
    suspect(connection)
    oldest = suspect(connection, queue="'mail'", run_at="now() - interval '1 hour'")
    result = claim_suspect(connection)
    assert result.claimed is not None
    row = row_of(connection, oldest)
    assert (result.claimed.run_id, result.claimed.suspect, result.waits) == (oldest, 1, False)
    assert (row["status"], row["locked_by"], row["lease_no"]) == ("running", WORKER, result.claimed.lease_no)


def test_a_run_that_is_no_suspect_is_left_to_other_claims_though_it_has_waited_longer(connection: PgConnection) -> None:
    run_in(connection, Status.FAILED, run_at="now() - interval '1 hour'")
    only = suspect(connection)
    assert taken(connection) == only
    assert taken(connection) is None


def test_within_a_queue_the_urgent_suspect_goes_first(connection: PgConnection) -> None:
    suspect(connection, run_at="now() - interval '1 hour'")
    urgent = suspect(connection, priority="-1")
    assert taken(connection) == urgent


def test_between_queues_the_one_that_has_waited_longest_goes_first_however_urgent(connection: PgConnection) -> None:
    oldest = suspect(connection, priority="5", run_at="now() - interval '1 hour'")
    suspect(connection, queue="'mail'")
    assert taken(connection) == oldest


def test_one_that_has_cost_two_leases_waits_for_a_worker_that_has_nothing_else(connection: PgConnection) -> None:
    twice = suspect(connection, leases=2)
    assert claim_suspect(connection) == Suspect(None, waits=True)
    result = claim_suspect(connection, alone=True)
    assert result.claimed is not None
    assert (result.claimed.run_id, result.claimed.alone, result.waits) == (twice, True, False)
    assert claim_suspect(connection, alone=True) == Suspect(None, waits=False)


@pytest.mark.parametrize(
    "columns",
    [
        {"run_at": "now() + interval '1 hour'"},
        {"job_type": "'unknown'"},
        {"queue": "'paused'"},
        {"queue": "'full'"},
        {"queue": "'other'"},
        {"attempts": "5"},
    ],
    ids=lambda columns: next(iter(columns)) + " " + next(iter(columns.values())).strip("'"),
)
def test_a_suspect_is_claimed_on_the_conditions_of_every_claim(
    connection: PgConnection, columns: dict[str, str]
) -> None:
    queue.pause_queue(connection, "paused", OPERATOR)
    queue.limit_queue(connection, "full", 0, OPERATOR)
    for leases in (1, 2):
        suspect(connection, leases, **columns)
    request = ClaimRequest({"noop": 60.0}, 10, ["default", "paused", "full"])
    for alone in (False, True):
        assert claim_suspect(connection, request, alone) == Suspect(None, waits=False)


def test_a_suspect_takes_a_place_under_its_queues_limit(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 1, OPERATOR)
    first, second = (suspect(connection, queue="'mail'") for _ in range(2))
    assert taken(connection) == first
    assert taken(connection) is None
    queue.succeed(connection, [queue.Done(lease_of(connection, first), None)])
    assert taken(connection) == second


def test_one_may_wait_for_the_place_that_a_run_of_this_worker_has_but_not_for_those_of_others(
    connection: PgConnection,
) -> None:
    queue.limit_queue(connection, "mail", 1, OPERATOR)
    held = run_in(connection, Status.QUEUED, queue="'mail'", attempts="0")["id"]
    queue.exchange(connection, WORKER, [], REQUEST)
    assert row_of(connection, held)["locked_by"] == WORKER
    suspect(connection, leases=1, queue="'mail'")
    assert claim_suspect(connection) == Suspect(None, waits=False, behind=True)
    assert queue.claim_suspect(connection, "another", REQUEST, alone=False) == Suspect(None, waits=False)
    suspect(connection, leases=2, queue="'mail'")
    assert claim_suspect(connection) == Suspect(None, waits=True)
    assert queue.claim_suspect(connection, "another", REQUEST, alone=False) == Suspect(None, waits=False)


def test_a_locked_suspect_is_passed_over(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        first, second = (suspect(connection, queue="'passed'") for _ in range(2))
    only = ClaimRequest({"noop": 60.0}, 10, ["passed"])
    with database.transaction(module_url) as other, database.transaction(module_url) as connection:
        assert taken(other, only) == first
        assert taken(connection, only) == second


def test_no_worker_stands_still_for_what_is_locked_or_not_due(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        suspect(connection, queue="'locked'")
        twice = suspect(connection, leases=2, queue="'locked'")
        suspect(connection, leases=2, queue="'locked'", run_at="now() + interval '1 hour'")
    only = ClaimRequest({"noop": 60.0}, 10, ["locked"])
    with database.transaction(fresh_url) as other, database.transaction(fresh_url) as connection:
        assert taken(other, only) is not None
        fetch_all(other, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", {"id": twice})
        for alone in (False, True):
            assert claim_suspect(connection, only, alone) == Suspect(None, waits=False)


def test_a_suspect_stays_one_until_it_is_done_but_one_that_ends_in_order_may_have_neighbours_again(
    connection: PgConnection,
) -> None:
    runs = [suspect(connection, leases=2) for _ in range(6)]
    leases = []
    for run_id in runs:
        assert taken(connection, alone=True) == run_id
        leases.append(lease_of(connection, run_id))
    queue.succeed(connection, [queue.Done(leases[0], None)])
    queue.fail(connection, leases[1], Failure("no", "ValueError"), 0)
    queue.release(connection, leases[2], "stopped")
    queue.snooze(connection, leases[3], None, "later")
    queue.give_up(connection, leases[4], Failure("never", "Permanent"))
    queue.ask_to_cancel(connection, runs[5], OPERATOR)
    queue.cancelled(connection, leases[5])
    assert [row_of(connection, run_id)["suspect"] for run_id in runs] == [2, 1, 1, 1, 1, 1]
    fresh = run_in(connection, Status.RUNNING)
    queue.fail(connection, lease_of(connection, fresh["id"]), Failure("no", "ValueError"), 0)
    assert row_of(connection, fresh["id"])["suspect"] == 0


def test_after_an_hour_without_a_failure_one_that_ends_in_order_is_no_suspect_any_more(
    connection: PgConnection,
) -> None:
    runs = [suspect(connection, failed_at=f"now() - interval '{minutes} minutes'") for minutes in (59, 61)]
    for run_id in runs:
        assert taken(connection) == run_id
        queue.snooze(connection, lease_of(connection, run_id), None, "later")
    assert [row_of(connection, run_id)["suspect"] for run_id in runs] == [1, 0]


def test_an_attempt_that_was_not_begun_and_a_retry_clear_nothing(connection: PgConnection) -> None:
    given_back = suspect(connection)
    assert taken(connection) == given_back
    queue.unclaim(connection, [lease_of(connection, given_back)])
    dead = run_in(connection, Status.DEAD, suspect="3")["id"]
    queue.retry(connection, dead, OPERATOR)
    assert (row_of(connection, given_back)["suspect"], row_of(connection, dead)["suspect"]) == (1, 3)
