"""Sweep: expired leases end in every lane, even if the queue was paused or limited after the claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import ClaimRequest
from rowcall.queue.claims.sweep import sweep
from rowcall.status import Status
from tests.support.rows import WORKER, row_of, run_in

OPERATOR = Operator("a test")
REQUEST = ClaimRequest({"noop": 60.0}, 10)
RAN_OUT = "now() - interval '1 second'"


def lost(connection: PgConnection, **columns: str) -> int:
    """Insert a run of the queue mail whose worker is gone, and return its id."""
    run_id: int = run_in(connection, Status.RUNNING, **{"queue": "'mail'", "locked_until": RAN_OUT} | columns)["id"]
    return run_id


def left_open(connection: PgConnection) -> None:
    """Leave the queue open: a worker that has no room, or more urgent work, does not claim from it."""


def paused(connection: PgConnection) -> None:
    queue.pause_queue(connection, "mail", OPERATOR)


def limited(connection: PgConnection) -> None:
    queue.limit_queue(connection, "mail", 1, OPERATOR)


@pytest.mark.parametrize("change", [left_open, paused, limited])
def test_a_lease_ends_though_its_queue_was_paused_or_limited_after_the_claim(
    connection: PgConnection, change: Callable[[PgConnection], None]
) -> None:
    run_id = lost(connection)
    change(connection)
    assert sweep(connection, REQUEST).expired == {run_id: Status.FAILED}
    [kept] = queue.attempts_of(connection, run_id)
    assert (kept["outcome"], kept["worker"], kept["error_type"]) == ("expire", WORKER, "LeaseExpired")


def test_a_lease_ends_in_a_queue_that_a_deploy_has_limited(connection: PgConnection) -> None:
    run_id = lost(connection)
    assert sweep(connection, replace(REQUEST, declared={"mail": 2})).expired == {run_id: Status.FAILED}


def test_a_swept_run_is_claimed_under_the_limit_that_came_after_it(connection: PgConnection) -> None:
    run_id = lost(connection)
    limited(connection)
    sweep(connection, REQUEST)
    claimed = queue.claim_suspect(connection, "worker-2", REQUEST, alone=False).claimed
    assert claimed is not None
    assert (claimed.run_id, queue.list_queues(connection, {})[-1]["running_under_limit"]) == (run_id, 1)


def test_a_lease_of_a_job_type_that_the_worker_does_not_know_ends_too(connection: PgConnection) -> None:
    run_id = lost(connection, job_type="'of another app'")
    paused(connection)
    assert list(sweep(connection, REQUEST).expired) == [run_id]


def test_a_sweep_spares_living_leases_other_queues_and_what_others_have_locked(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        alive = lost(connection, locked_until="now() + interval '1 minute'")
        waiting = run_in(connection, Status.QUEUED, queue="'mail'")["id"]
        paused(connection)
        locked = lost(connection)
    with database.transaction(fresh_url) as other, database.transaction(fresh_url) as connection:
        fetch_all(other, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", {"id": locked})
        assert sweep(connection, REQUEST).expired == {}
        other.rollback()
        assert sweep(connection, replace(REQUEST, queues=["reports"])).expired == {}
        assert list(sweep(connection, REQUEST).expired) == [locked]
        statuses = [row_of(connection, run_id)["status"] for run_id in (alive, waiting)]
    assert statuses == [Status.RUNNING, Status.QUEUED]


def test_a_cancel_request_and_the_last_attempt_count_in_a_sweep_as_in_a_claim(connection: PgConnection) -> None:
    cancelled = lost(connection, cancel_requested_at="now()")
    dead = lost(connection, attempts="5")
    paused(connection)
    assert sweep(connection, REQUEST).expired == {cancelled: Status.CANCELLED, dead: Status.DEAD}


@pytest.mark.parametrize("closed", [paused, limited, None], ids=["paused", "limited", "limited by a deploy"])
def test_a_sweep_goes_on_where_the_last_one_stopped_and_then_begins_anew(
    connection: PgConnection, closed: Callable[[PgConnection], None] | None
) -> None:
    request = REQUEST if closed else replace(REQUEST, declared={"mail": 1})
    for priority in ("1", "2"):
        for _ in range(3):
            run_in(connection, Status.QUEUED, queue="'mail'", priority=priority)
    # Last in the lane: the others were enqueued for an earlier time after it was claimed.
    run_id = lost(connection, priority="2", run_at="now() - interval '1 second'")
    if closed:
        closed(connection)
    found = sweep(connection, request, most=2)
    for _ in range(3):
        assert (found.expired, found.complete) == ({}, False)
        found = sweep(connection, request, found.place, most=2)
    assert (found.expired, found.complete) == ({run_id: Status.FAILED}, True)
