"""Claiming ahead: beyond its free slots, a worker takes only runs that it will start very soon."""

from __future__ import annotations

from dataclasses import replace

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection
from rowcall.queue import ClaimRequest
from rowcall.status import Status
from tests.support.rows import run_in

REQUEST = ClaimRequest({"noop": 60.0, "slow": 60.0}, limit=1, ahead=2, quick_types=["noop"])


def waiting(connection: PgConnection, job_type: str = "noop", **columns: str) -> int:
    run_id: int = run_in(connection, Status.QUEUED, job_type=f"'{job_type}'", **columns)["id"]
    return run_id


def taken(connection: PgConnection, request: ClaimRequest = REQUEST) -> list[int]:
    return [run.run_id for run in queue.claim(connection, "worker-2", request).claimed]


def test_quick_runs_are_claimed_beyond_the_free_slots_and_slow_ones_are_not(connection: PgConnection) -> None:
    slow = [waiting(connection, "slow") for _ in range(2)]
    quick = [waiting(connection) for _ in range(3)]
    assert taken(connection) == [slow[0], *quick[:2]]


def test_a_run_with_a_single_attempt_is_claimed_for_a_free_slot_only(connection: PgConnection) -> None:
    only = [waiting(connection, attempts="0", max_attempts="1") for _ in range(2)]
    quick = [waiting(connection) for _ in range(2)]
    assert taken(connection) == [only[0], *quick]


def test_without_a_free_slot_quick_runs_are_claimed_ahead_and_leases_are_left_to_the_sweep(
    connection: PgConnection,
) -> None:
    run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'")
    quick = [waiting(connection) for _ in range(3)]
    assert taken(connection, replace(REQUEST, limit=0)) == quick[:2]
    assert taken(connection, replace(REQUEST, limit=0, ahead=0)) == []


def test_where_most_of_a_lanes_first_runs_are_slow_none_of_it_is_claimed_ahead(connection: PgConnection) -> None:
    for number in range(3):
        waiting(connection, "slow", priority=str(number % 2))
    first, second = (waiting(connection, priority="1") for _ in range(2))
    waiting(connection)
    assert taken(connection, replace(REQUEST, limit=0, ahead=9)) == [first, second]


def test_nothing_is_claimed_ahead_that_is_unknown_finished_paused_or_limited(connection: PgConnection) -> None:
    for name in ("paused", "limited"):
        waiting(connection, queue=f"'{name}'")
    queue.pause_queue(connection, "paused", Operator("a test"))
    queue.limit_queue(connection, "limited", 5, Operator("a test"))
    waiting(connection, "unknown")
    waiting(connection, attempts="5")
    waiting(connection, run_at="now() + interval '1 hour'")
    first, second = waiting(connection, priority="1"), waiting(connection)
    assert taken(connection, replace(REQUEST, limit=0)) == [second, first]
