"""Limits: a queue runs only this many runs at a time over all workers, counted from the leases."""

from __future__ import annotations

from dataclasses import replace

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue import ClaimRequest, Lease, Limited
from rowcall.queue.queues import make_queues
from rowcall.status import Status
from tests.support.rows import row_of, run_in

OPERATOR = Operator("a test")
REQUEST = ClaimRequest({"noop": 60.0}, 10)


def limited(connection: PgConnection, limit: int, waiting: int, name: str = "mail", **columns: str) -> list[int]:
    """Create a queue with a limit, with waiting runs, and return their ids."""
    queue.limit_queue(connection, name, limit, OPERATOR)
    return [run_in(connection, Status.QUEUED, queue=f"'{name}'", **columns)["id"] for _ in range(waiting)]


def taken(connection: PgConnection, request: ClaimRequest = REQUEST) -> list[int]:
    return [run.run_id for run in queue.claim_limited(connection, "worker-2", request).claimed]


def lease_of(connection: PgConnection, run_id: int) -> Lease:
    return Lease("worker-2", run_id, row_of(connection, run_id)["lease_no"])


def finish(connection: PgConnection, run_id: int) -> None:
    assert queue.succeed(connection, [queue.Done(lease_of(connection, run_id), None)])


def test_the_ordinary_claim_leaves_a_limited_queue_alone_and_says_that_it_waits(connection: PgConnection) -> None:
    limited(connection, 2, waiting=1)
    result = queue.claim(connection, "worker-2", REQUEST)
    assert (result.claimed, result.limited) == ([], Limited.FIRST)


def test_the_ordinary_claim_tells_whether_something_more_urgent_waits_in_a_limited_queue(
    connection: PgConnection,
) -> None:
    limited(connection, 2, waiting=1, priority="5")
    run_in(connection, Status.QUEUED)
    result = queue.claim(connection, "worker-2", REQUEST)
    assert (len(result.claimed), result.limited) == (1, Limited.LATER)


def test_no_more_than_the_limit_run_at_a_time(connection: PgConnection) -> None:
    ids = limited(connection, 2, waiting=3)
    assert taken(connection) == ids[:2]
    assert taken(connection) == []


def test_a_place_is_free_as_soon_as_its_run_has_ended_however_it_ended(connection: PgConnection) -> None:
    ids = limited(connection, 1, waiting=4)
    assert taken(connection) == [ids[0]]
    finish(connection, ids[0])
    assert taken(connection) == [ids[1]]
    queue.force_cancel(connection, ids[1], row_of(connection, ids[1])["lease_no"], OPERATOR)
    assert taken(connection) == [ids[2]]
    fetch_all(connection, "DELETE FROM rowcall.job_runs WHERE id = %(id)s", {"id": ids[2]})
    assert taken(connection) == [ids[3]]


def test_the_place_of_a_dead_worker_is_free_when_its_lease_has_expired(connection: PgConnection) -> None:
    first, second = limited(connection, 1, waiting=2)
    taken(connection)
    fetch_all(
        connection, "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'"
    )
    result = queue.claim_limited(connection, "worker-2", REQUEST)
    assert (result.claimed, result.expired) == ([], {first: Status.FAILED})
    assert taken(connection) == [second]


def test_each_of_two_expired_leases_under_a_limit_is_kept_as_its_own_workers(connection: PgConnection) -> None:
    lost = limited(connection, 2, waiting=2)
    for run_id, worker in zip(lost, ("worker-1", "worker-3"), strict=True):
        [claimed] = queue.claim_limited(connection, worker, replace(REQUEST, limit=1)).claimed
        assert claimed.run_id == run_id
    limited(connection, 2, waiting=1)
    fetch_all(
        connection, "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'"
    )
    assert len(queue.claim_limited(connection, "worker-2", REQUEST).expired) == 2
    kept = [[(one["outcome"], one["worker"]) for one in queue.attempts_of(connection, run_id)] for run_id in lost]
    assert kept == [[("expire", "worker-1")], [("expire", "worker-3")]]


def test_a_heartbeat_that_comes_late_keeps_the_place(connection: PgConnection) -> None:
    first, _ = limited(connection, 1, waiting=2)
    taken(connection)
    fetch_all(
        connection, "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'"
    )
    queue.heartbeat(connection, {lease_of(connection, first): 60})
    assert taken(connection) == []


def test_priorities_of_one_queue_share_its_limit_and_the_urgent_go_first(connection: PgConnection) -> None:
    later = limited(connection, 3, waiting=2, priority="9")
    urgent = limited(connection, 3, waiting=2, priority="1")
    assert taken(connection) == [*urgent, later[0]]


def test_limits_of_several_queues_hold_each_for_itself(connection: PgConnection) -> None:
    mail = limited(connection, 1, waiting=2, name="mail")
    reports = limited(connection, 2, waiting=3, name="reports")
    assert sorted(taken(connection)) == sorted([mail[0], *reports[:2]])


def test_a_full_queue_takes_no_place_of_another(connection: PgConnection) -> None:
    mail = limited(connection, 2, waiting=3, name="mail")
    [first] = limited(connection, 2, waiting=1, name="reports")
    assert sorted(taken(connection)) == sorted([*mail[:2], first])
    [second] = limited(connection, 2, waiting=1, name="reports")
    assert taken(connection) == [second]
    [third] = limited(connection, 2, waiting=1, name="reports")
    assert taken(connection) == []
    finish(connection, first)
    assert taken(connection) == [third]


def test_under_a_limit_too_what_is_not_due_waits(connection: PgConnection) -> None:
    [due] = limited(connection, 5, waiting=1)
    limited(connection, 5, waiting=1, run_at="now() + interval '1 hour'")
    assert taken(connection) == [due]


def test_under_a_limit_too_what_is_due_at_this_very_moment_is_taken(connection: PgConnection) -> None:
    assert len(limited(connection, 5, waiting=1, run_at="now()")) == len(taken(connection)) == 1


def test_queues_with_limits_share_the_room_of_one_claim(connection: PgConnection) -> None:
    ids = [*limited(connection, 5, waiting=2, name="mail"), *limited(connection, 5, waiting=2, name="reports")]
    assert len(taken(connection, ClaimRequest({"noop": 60.0}, 3))) == 3
    assert len(taken(connection)) == len(ids) - 3


def test_a_claim_takes_no_more_than_it_has_room_for(connection: PgConnection) -> None:
    ids = limited(connection, 5, waiting=5)
    assert taken(connection, ClaimRequest({"noop": 60.0}, 2)) == ids[:2]
    assert taken(connection, ClaimRequest({"noop": 60.0}, 2)) == ids[2:4]
    assert taken(connection) == ids[4:]


def test_a_limit_of_none_lets_nothing_run_and_none_at_all_lets_everything(connection: PgConnection) -> None:
    ids = limited(connection, 0, waiting=2)
    assert taken(connection) == []
    queue.limit_queue(connection, "mail", None, OPERATOR)
    assert [run.run_id for run in queue.claim(connection, "worker-2", REQUEST).claimed] == ids


def test_a_lowered_limit_waits_until_enough_have_ended(connection: PgConnection) -> None:
    ids = limited(connection, 3, waiting=5)
    assert taken(connection) == ids[:3]
    queue.limit_queue(connection, "mail", 1, OPERATOR)
    finish(connection, ids[0])
    finish(connection, ids[1])
    assert taken(connection) == []
    finish(connection, ids[2])
    assert taken(connection) == [ids[3]]


def test_a_types_own_limit_holds_for_its_queue_and_the_smaller_of_two_counts(connection: PgConnection) -> None:
    declared = ClaimRequest({"noop": 60.0}, 10, declared={"mail": 2})
    ids = [run_in(connection, Status.QUEUED, queue="'mail'")["id"] for _ in range(4)]
    make_queues(connection, ["mail"])
    assert queue.claim(connection, "worker-2", declared).claimed == []
    assert taken(connection, declared) == ids[:2]
    queue.limit_queue(connection, "mail", 3, OPERATOR)
    assert taken(connection, declared) == []
    assert taken(connection) == ids[2:3]


def test_a_paused_queue_with_a_limit_is_left_alone(connection: PgConnection) -> None:
    limited(connection, 2, waiting=1)
    queue.pause_queue(connection, "mail", OPERATOR)
    assert taken(connection) == []
    assert queue.claim(connection, "worker-2", REQUEST).limited is None
    queue.resume_queue(connection, "mail", OPERATOR)
    assert len(taken(connection)) == 1


def test_only_the_queues_and_types_that_a_worker_serves_are_taken(connection: PgConnection) -> None:
    limited(connection, 2, waiting=1)
    assert taken(connection, ClaimRequest({"noop": 60.0}, 10, queues=["reports"])) == []
    assert taken(connection, ClaimRequest({"other": 60.0}, 10)) == []


def test_a_retried_run_takes_one_place_and_not_two(connection: PgConnection) -> None:
    first, second, third = limited(connection, 2, waiting=3)
    assert taken(connection) == [first, second]
    queue.fail(connection, lease_of(connection, first), queue.Failure("it broke", "ValueError"), delay=-120)
    assert taken(connection) == [first]
    assert taken(connection) == []
    finish(connection, second)
    assert taken(connection) == [third]


def test_a_claim_under_way_is_not_waited_for_and_not_doubled(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        ids = limited(making, 1, waiting=2)
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        assert taken(one) == ids[:1]
        result = queue.claim_limited(other, "worker-3", REQUEST)
        assert (result.claimed, result.contended) == ([], True)
        one.commit()
        result = queue.claim_limited(other, "worker-3", REQUEST)
        assert (result.claimed, result.contended) == ([], False)


def test_who_holds_the_places_is_forgotten_when_they_have_ended(connection: PgConnection) -> None:
    ids = limited(connection, 2, waiting=2)
    taken(connection)
    for run_id in ids:
        finish(connection, run_id)
    limited(connection, 2, waiting=1)
    [last] = taken(connection)
    assert fetch_value(connection, "SELECT holders FROM rowcall.queues WHERE name = 'mail'") == [last]


def test_what_is_done_to_a_queue_is_audited(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 2, OPERATOR)
    queue.pause_queue(connection, "mail", OPERATOR)
    queue.resume_queue(connection, "mail", OPERATOR)
    rows = fetch_all(
        connection, "SELECT action, who, before, after FROM rowcall.audit_log WHERE subject = 'queue' ORDER BY id"
    )
    assert [(row["action"], row["who"]) for row in rows] == [(a, "a test") for a in ("limit", "pause", "resume")]
    assert (rows[0]["before"]["max_running"], rows[0]["after"]["max_running"]) == (None, 2)
    assert [row["after"]["paused_at"] is None for row in rows] == [True, False, True]


def test_the_list_of_queues_tells_what_waits_and_what_holds(connection: PgConnection) -> None:
    limited(connection, 2, waiting=3)
    taken(connection)
    run_in(connection, Status.QUEUED, queue="'reports'", run_at="now() + interval '1 hour'")
    rows = {row["name"]: row for row in queue.list_queues(connection, {"reports": 7})}
    assert [rows["mail"][name] for name in ("max_running", "running_under_limit", "due")] == [2, 2, 1]
    assert [rows["reports"][name] for name in ("max_running", "running_under_limit", "due")] == [7, None, 0]


def test_a_declared_limit_survives_the_removal_of_its_queues_settings(connection: PgConnection) -> None:
    declared = ClaimRequest({"noop": 60.0}, 10, declared={"mail": 2})
    make_queues(connection, ["mail"])
    ids = [run_in(connection, Status.QUEUED, queue="'mail'")["id"] for _ in range(3)]
    queue.remove_queue(connection, "mail", OPERATOR)
    # The row that a claim locks is gone; this claim inserts it again, for the next one.
    result = queue.claim_limited(connection, "worker-2", declared)
    assert (result.claimed, result.contended) == ([], True)
    assert taken(connection, declared) == ids[:2]
    assert taken(connection, declared) == []
