"""Claim: which runs a worker gets, and in which order."""

from __future__ import annotations

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import ClaimRequest
from rowcall.status import Status
from tests.support.rows import WORKER, row_of, run_in

NOOP = {"noop": 60.0}


def claimed_ids(connection: PgConnection, limit: int = 10, queues: list[str] | None = None) -> list[int]:
    return [run.run_id for run in queue.claim(connection, "worker-2", ClaimRequest(NOOP, limit, queues)).claimed]


def success(run_id: int, lease_no: int, result: str | None = None) -> queue.Done:
    return queue.Done(queue.Lease(WORKER, run_id, lease_no), result)


def test_a_claim_counts_the_attempt_and_opens_a_lease_of_the_types_length(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED)
    [claimed] = queue.claim(connection, "worker-2", ClaimRequest({"noop": 77.0}, 10)).claimed
    now = row_of(connection, run["id"])
    assert (claimed.attempt, claimed.lease_no, claimed.payload) == (3, 4, {})
    assert (now["attempts"], now["lease_no"], now["locked_by"]) == (3, 4, "worker-2")
    assert (now["locked_until"] - now["started_at"]).total_seconds() == 77


def test_each_type_has_a_lease_of_its_own_length(connection: PgConnection) -> None:
    long = run_in(connection, Status.QUEUED, job_type="'long'")
    queue.claim(connection, "worker-2", ClaimRequest({"noop": 60.0, "long": 600.0}, 10))
    now = row_of(connection, long["id"])
    assert (now["locked_until"] - now["started_at"]).total_seconds() == 600


def test_an_attempt_begins_without_the_progress_of_the_one_before_and_with_what_it_saved(
    connection: PgConnection,
) -> None:
    told = run_in(connection, Status.FAILED, progress="""'{"share": 0.5, "note": "half", "saved": {"rows": 7}}'""")
    silent = run_in(connection, Status.FAILED)
    assert claimed_ids(connection) == [told["id"], silent["id"]]
    assert row_of(connection, told["id"])["progress"] == {"saved": {"rows": 7}}
    assert row_of(connection, silent["id"])["progress"] is None
    assert queue.saved(connection, told["id"]) == {"rows": 7}


def test_telling_of_progress_keeps_what_was_saved(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, progress="""'{"saved": {"rows": 7}}'""")
    lease = queue.Lease(WORKER, run["id"], run["lease_no"])
    assert queue.show_progress(connection, {lease: '{"share": 0.9, "note": "nearly"}'}) == {lease}
    assert row_of(connection, run["id"])["progress"] == {"share": 0.9, "note": "nearly", "saved": {"rows": 7}}
    assert not queue.save(connection, lease._replace(worker="worker-2"), "null")


def test_saving_keeps_the_progress_that_is_shown(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, progress="""'{"share": 0.5, "note": "half", "saved": {"rows": 7}}'""")
    assert queue.save(connection, queue.Lease(WORKER, run["id"], run["lease_no"]), "8")
    assert row_of(connection, run["id"])["progress"] == {"share": 0.5, "note": "half", "saved": 8}


def test_what_is_not_due_waits(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, run_at="now() + interval '1 second'")
    due = run_in(connection, Status.QUEUED, run_at="now()")
    assert claimed_ids(connection) == [due["id"]]


def test_a_run_without_attempts_left_is_left_alone(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, attempts="5", max_attempts="5")
    assert claimed_ids(connection) == []


def test_results_and_the_next_claim_go_in_one_statement(connection: PgConnection) -> None:
    done, running = (run_in(connection, Status.RUNNING) for _ in range(2))
    due = run_in(connection, Status.QUEUED)
    results = [success(done["id"], 3, '{"sum": 7}'), success(running["id"], 2)]
    result = queue.claim(connection, WORKER, ClaimRequest(NOOP, 10), results)
    assert (result.finished, [claimed.run_id for claimed in result.claimed]) == ({done["id"]}, [due["id"]])
    assert (row_of(connection, done["id"])["result"], row_of(connection, running["id"])) == ({"sum": 7}, running)


def test_a_success_counts_though_its_lease_has_expired_and_other_expired_ones_are_ended(
    connection: PgConnection,
) -> None:
    done, lost = (run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'") for _ in range(2))
    result = queue.claim(connection, WORKER, ClaimRequest(NOOP, 10), [success(done["id"], 3)])
    assert (result.finished, result.claimed, result.expired) == ({done["id"]}, [], {lost["id"]: Status.FAILED})
    assert row_of(connection, done["id"])["status"] == Status.SUCCEEDED
    assert queue.attempts_of(connection, done["id"]) == []


def test_the_urgent_first_then_the_longest_due_then_the_first_asked_for(connection: PgConnection) -> None:
    late = run_in(connection, Status.QUEUED, priority="1", run_at="now() - interval '9 hours'")
    second = run_in(connection, Status.QUEUED)
    third = run_in(connection, Status.FAILED)
    first = run_in(connection, Status.QUEUED, run_at="now() - interval '2 hours'")
    expected = [run["id"] for run in (first, second, third, late)]
    one_by_one = [run_id for _ in expected for run_id in claimed_ids(connection, limit=1)]
    assert one_by_one == expected


def test_a_batch_is_begun_with_its_most_urgent(connection: PgConnection) -> None:
    late = run_in(connection, Status.QUEUED, priority="1")
    urgent = run_in(connection, Status.QUEUED)
    assert claimed_ids(connection) == [urgent["id"], late["id"]]


def test_a_batch_is_no_larger_than_was_asked_for_however_many_queues_have_something(connection: PgConnection) -> None:
    for name in ("'mail'", "'reports'"):
        run_in(connection, Status.QUEUED, queue=name)
        run_in(connection, Status.QUEUED, queue=name)
    assert len(claimed_ids(connection, limit=3)) == 3


def test_the_queue_that_waited_longest_goes_first_so_none_starves(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, queue="'aaa'")
    waiting = run_in(connection, Status.QUEUED, queue="'zzz'", run_at="now() - interval '1 hour'")
    assert claimed_ids(connection, limit=1) == [waiting["id"]]


def test_only_the_queues_that_were_named_are_served(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, queue="'mail'")
    mine = run_in(connection, Status.QUEUED, queue="'reports'")
    assert claimed_ids(connection, queues=["reports"]) == [mine["id"]]


def test_a_paused_queue_is_left_alone_until_it_goes_on(connection: PgConnection) -> None:
    mail = run_in(connection, Status.QUEUED, queue="'mail'")
    other = run_in(connection, Status.QUEUED, queue="'reports'")
    fetch_all(connection, "INSERT INTO rowcall.queues (name, paused_at) VALUES ('mail', now())")
    assert claimed_ids(connection) == [other["id"]]
    fetch_all(connection, "UPDATE rowcall.queues SET paused_at = NULL")
    assert claimed_ids(connection) == [mail["id"]]


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
def test_a_claim_ends_expired_leases(connection: PgConnection, columns: dict[str, str], becomes: Status) -> None:
    run = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'", **columns)
    result = queue.claim(connection, "worker-2", ClaimRequest(NOOP, 10))
    assert (result.claimed, result.expired) == ([], {run["id"]: becomes})
    now = row_of(connection, run["id"])
    assert (now["status"], now["error_type"]) == (becomes, "LeaseExpired")
    assert f"lease of {WORKER} expired" in now["last_error"]
    assert [kept["outcome"] for kept in queue.attempts_of(connection, run["id"])] == ["expire"]


def test_each_of_two_expired_leases_is_kept_as_its_own_workers(connection: PgConnection) -> None:
    lost = [
        run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'", locked_by=f"'{worker}'")
        for worker in (WORKER, "worker-3")
    ]
    queue.claim(connection, "worker-2", ClaimRequest(NOOP, 10))
    assert [[kept["worker"] for kept in queue.attempts_of(connection, run["id"])] for run in lost] == [
        [WORKER],
        ["worker-3"],
    ]


def test_a_run_that_is_still_worked_on_takes_nobodys_place(connection: PgConnection) -> None:
    run_in(connection, Status.RUNNING, run_at="now() - interval '1 hour'")
    due = run_in(connection, Status.QUEUED)
    assert claimed_ids(connection, limit=1) == [due["id"]]


def test_a_run_whose_lease_expired_is_taken_over_at_once(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'")
    queue.claim(connection, "worker-2", ClaimRequest(NOOP, 10))
    claimed = queue.claim_suspect(connection, "worker-2", ClaimRequest(NOOP, 10), alone=False).claimed
    assert claimed is not None
    assert claimed.run_id == run["id"]
    assert row_of(connection, run["id"])["lease_no"] == run["lease_no"] + 1


def test_five_steps_that_break_owner_and_attempts_as_a_fence_do_not_break_the_lease_number(
    connection: PgConnection,
) -> None:
    operator = Operator("a test")
    run_id = queue.enqueue(connection, "noop", {}).run_id
    [zombie] = queue.claim(connection, WORKER, ClaimRequest(NOOP, 1)).claimed
    queue.force_cancel(connection, run_id, zombie.lease_no, operator)
    queue.retry(connection, run_id, operator)
    [again] = queue.claim(connection, WORKER, ClaimRequest(NOOP, 1)).claimed
    assert (again.attempt, again.lease_no) == (zombie.attempt, zombie.lease_no + 1)
    stale = queue.Lease(WORKER, run_id, zombie.lease_no)
    assert queue.fail(connection, stale, queue.Failure("stale", "Stale"), delay=0) is None
    assert queue.succeed(connection, [queue.Done(stale, None)]) == set()
    assert row_of(connection, run_id)["status"] == Status.RUNNING
