"""Explain: what it says about the worker that has a run, and about those that should take it."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.job_types import Catalogue, builtin
from rowcall.queue import Explained, explain
from rowcall.queue.workers import Registration, register, stopped
from rowcall.status import Status
from tests.support.rows import WORKER, run_in

HEARTBEAT = 40.0


@pytest.fixture(autouse=True)
def somebody_works(connection: PgConnection) -> None:
    """Register a worker of all queues with a recent heartbeat."""
    register(connection, Registration(WORKER, "host", 1, "1", None, ["noop"], 10))


def explained(connection: PgConnection, run_id: int, catalogue: Catalogue | None = None) -> Explained:
    return explain(connection, run_id, {}, HEARTBEAT, catalogue)


def last_heartbeat(connection: PgConnection, ago: str, worker: str = WORKER) -> None:
    fetch_all(
        connection,
        "UPDATE rowcall.workers SET heartbeat_at = now() - %(ago)s::interval WHERE id = %(worker)s",
        {"ago": ago, "worker": worker},
    )


# The worker that has it


def test_a_run_whose_worker_may_be_dead_recovers_and_need_not_be_cancelled(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, started_at="now()")
    assert "; if it is dead, another worker takes over at 2" in explained(connection, run["id"]).message
    assert explained(connection, run["id"]).commands == (f"rowcall runs cancel {run['id']}",)
    last_heartbeat(connection, "61 seconds")
    told = explained(connection, run["id"])
    assert "its worker's last heartbeat: 2" in told.message
    assert "; if it is dead, another worker takes over at 2" in told.message
    assert told.commands == ()


def test_a_run_whose_worker_has_left_no_row_says_until_when_its_lease_lasts(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, locked_by="'forgotten'")
    assert "; lease until 2" in explained(connection, run["id"]).message


def test_the_worker_that_let_a_lease_expire_does_not_end_the_attempt(connection: PgConnection) -> None:
    """Its own settings may be shorter than those of the process that asks."""
    run = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'")
    assert "no live worker serves queue default" in explained(connection, run["id"]).message
    register(connection, Registration("worker-2", "host", 1, "1", None, ["noop"], 10))
    assert "within seconds" in explained(connection, run["id"]).message


# Those that should take it


def test_a_worker_that_overslept_by_its_own_settings_takes_nothing(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED)
    fetch_all(connection, "UPDATE rowcall.workers SET sleeps_until = now() + interval '1 second'")
    assert "a worker claims it" in explained(connection, run["id"]).message
    fetch_all(connection, "UPDATE rowcall.workers SET sleeps_until = now() - interval '1 second'")
    message = explained(connection, run["id"]).message
    assert f"no live worker takes noop from queue default: {WORKER} sent its last heartbeat" in message
    lapsed = "has not woken up on time, or has let a lease expire: its process may be hanging"
    assert message.endswith(f", and since then {lapsed}")


def test_a_worker_that_let_a_lease_expire_takes_nothing(connection: PgConnection) -> None:
    run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'", run_at="now() - interval '1 h'")
    run = run_in(connection, Status.QUEUED)
    assert "its process may be hanging" in explained(connection, run["id"]).message
    register(connection, Registration("worker-2", "host", 1, "1", None, ["noop"], 10))
    assert "a worker claims it" in explained(connection, run["id"]).message


@pytest.mark.parametrize(
    ("run_at", "told", "command"),
    [
        ("now() - interval '1 minute'", "; the next one will take it", "rowcall worker once"),
        ("now() + interval '1 second'", "; the next one will take it", "rowcall worker run"),
        ("now() - interval '1 hour'", ", after the run had become due, and did not take it", "rowcall worker run"),
    ],
    ids=["due since", "due later", "was due"],
)
def test_a_worker_that_ended_is_said_to_have_left_the_run_only_if_it_was_due(
    connection: PgConnection, run_at: str, told: str, command: str
) -> None:
    run = run_in(connection, Status.QUEUED, run_at=run_at)
    stopped(connection, WORKER)
    fetch_all(connection, "UPDATE rowcall.workers SET stopped_at = now() - interval '2 minutes'")
    [served] = [one for one in explained(connection, run["id"]).conditions if one.name == "worker"]
    assert served.message.endswith(told)
    assert served.command == command


def test_no_worker_is_proposed_that_would_not_know_the_type(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, job_type="'shop_ghost'")
    told = explained(connection, run["id"], Catalogue(builtin, app="shop"))
    why = "; ROWCALL_APP=shop has no type shop_ghost: start a worker with the ROWCALL_APP that has it"
    assert told.message.endswith(why)
    assert told.commands == ()
    told = explained(connection, run["id"], Catalogue(builtin))
    assert "; ROWCALL_APP is not set, and Rowcall itself has no type shop_ghost: start" in told.message
    register(connection, Registration("worker-2", "host", 1, "1", None, ["shop_ghost"], 10))
    assert "a worker claims it" in explained(connection, run["id"], Catalogue(builtin, app="shop")).message


# By its own heartbeats


def test_a_worker_is_late_by_its_own_heartbeats_and_not_by_the_settings_of_the_reader(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED)
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_seconds = 2")
    last_heartbeat(connection, "4 seconds")
    assert "a worker claims it" in explained(connection, run["id"]).message
    last_heartbeat(connection, "6 seconds")
    message = explained(connection, run["id"]).message
    assert f"no live worker takes noop from queue default: {WORKER} sent its last heartbeat" in message
    assert message.endswith(", and should send one every 2 s")
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_seconds = 50")
    last_heartbeat(connection, "124 seconds")
    assert "a worker claims it" in explained(connection, run["id"]).message


def test_the_worker_that_has_a_run_may_be_dead_after_one_of_its_own_heartbeats(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, started_at="now()")
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_seconds = 2")
    last_heartbeat(connection, "2 seconds")
    assert explained(connection, run["id"]).commands == (f"rowcall runs cancel {run['id']}",)
    last_heartbeat(connection, "4 seconds")
    assert explained(connection, run["id"]).commands == ()
