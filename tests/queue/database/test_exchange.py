"""Exchange: which statements a worker's results and its next claim need, and in which order."""

from __future__ import annotations

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.queue import ClaimRequest, ClaimResult, Done, Lease, Limited, exchange
from rowcall.status import Status
from tests.support.rows import WORKER, row_of, run_in

OPERATOR = Operator("a test")


def success(connection: PgConnection, **columns: str) -> Done:
    """Return the result of a running run of this worker."""
    run = run_in(connection, Status.RUNNING, **columns)
    return Done(Lease(WORKER, run["id"], run["lease_no"]), None)


def request(limit: int, limited: Limited | None = None) -> ClaimRequest:
    return ClaimRequest({"noop": 60.0}, limit, limited=limited)


def claimed_ids(result: ClaimResult) -> list[int]:
    return [run.run_id for run in result.claimed]


def test_without_room_results_are_written_and_nothing_is_claimed(connection: PgConnection) -> None:
    done = success(connection)
    run_in(connection, Status.QUEUED)
    result = exchange(connection, WORKER, [done], request(0, Limited.LATER))
    assert (result.finished, result.claimed) == ({done.lease.run_id}, [])
    assert result.limited is Limited.LATER  # nobody has looked since


def test_with_nothing_finished_and_no_room_the_database_is_not_asked(module_url: str) -> None:
    closed = database.connect(module_url)
    closed.close()
    assert exchange(closed, WORKER, [], request(0)) == ClaimResult([], {})


def test_what_is_due_under_a_limit_is_claimed_behind_the_rest(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 5, OPERATOR)
    mail = run_in(connection, Status.QUEUED, queue="'mail'", priority="5")["id"]
    other = run_in(connection, Status.QUEUED)["id"]
    done = success(connection)
    result = exchange(connection, WORKER, [done], request(2))
    assert (result.finished, claimed_ids(result), result.limited) == (
        {done.lease.run_id},
        [other, mail],
        Limited.LATER,
    )


def test_where_the_most_urgent_is_under_a_limit_it_is_claimed_first(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 5, OPERATOR)
    mail = run_in(connection, Status.QUEUED, queue="'mail'", priority="-1")["id"]
    run_in(connection, Status.QUEUED)
    assert claimed_ids(exchange(connection, WORKER, [], request(1, Limited.FIRST))) == [mail]


def test_a_place_under_a_limit_that_a_result_frees_is_taken_at_once(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 1, OPERATOR)
    first, second = (run_in(connection, Status.QUEUED, queue="'mail'")["id"] for _ in range(2))
    assert claimed_ids(exchange(connection, WORKER, [], request(9, Limited.FIRST))) == [first]
    done = Done(Lease(WORKER, first, row_of(connection, first)["lease_no"]), None)
    result = exchange(connection, WORKER, [done], request(9, Limited.FIRST))
    assert (result.finished, claimed_ids(result)) == ({first}, [second])


def test_no_more_is_claimed_than_there_is_room_for_whichever_goes_first(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 5, OPERATOR)
    for _ in range(2):
        run_in(connection, Status.QUEUED, queue="'mail'")
        run_in(connection, Status.QUEUED)
    assert len(exchange(connection, WORKER, [], request(1)).claimed) == 1
    assert len(exchange(connection, WORKER, [], request(2, Limited.FIRST)).claimed) == 2
