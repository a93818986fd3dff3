"""Explain: each condition of the claim in words, evaluated on the run, and how to change it."""

from __future__ import annotations

import pytest

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import RunNotFound, TransitionRefused
from rowcall.queue import ClaimRequest, Condition, claim, claim_limited, explain, limit_queue, pause_queue, retry
from rowcall.queue.queues import make_queues
from rowcall.queue.workers import Registration, register, stopped
from rowcall.status import FINAL, Status
from tests.support.rows import WORKER, run_in

OPERATOR = Operator("somebody")
HEARTBEAT = 40.0


@pytest.fixture(autouse=True)
def somebody_works(connection: PgConnection) -> None:
    """Register a worker of all queues with a recent heartbeat."""
    register(connection, Registration("worker-1", "host", 1, "1", None, ["noop"], 10))


def conditions(connection: PgConnection, run_id: int, **declared: int) -> dict[str, Condition]:
    explained = explain(connection, run_id, declared, HEARTBEAT)
    return {condition.name: condition for condition in explained.conditions}


def only_failing(connection: PgConnection, run_id: int, **declared: int) -> Condition:
    """Return the one condition that does not hold; the message is the same."""
    explained = explain(connection, run_id, declared, HEARTBEAT)
    [failing] = [condition for condition in explained.conditions if not condition.holds]
    assert (explained.message, explained.commands) == (failing.message, (failing.command,) if failing.command else ())
    return failing


def test_a_run_that_nothing_holds_up_is_next(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, queue="'alone'")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert all(condition.holds for condition in explained.conditions)
    assert "first in queue alone, and a worker claims it at the queue's next turn" in explained.message
    assert explained.commands == ()
    assert [one.run_id for one in claim(connection, WORKER, ClaimRequest({"noop": 60}, 1, ["alone"])).claimed] == [
        run["id"]
    ]


def test_a_run_behind_others_is_told_how_many_come_first(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, queue="'line'")
    for _ in range(2):
        run_in(connection, Status.QUEUED, queue="'line'", run_at="now() - interval '1 hour'")
    run_in(connection, Status.FAILED, queue="'line'", priority="-1")
    run_in(connection, Status.QUEUED, queue="'line'", priority="1", run_at="now() - interval '1 hour'")
    run_in(connection, Status.QUEUED, queue="'line'", priority="-1", run_at="now() + interval '1 hour'")
    message = explain(connection, run["id"], {}, HEARTBEAT).message
    assert message == "waiting for its turn: in queue line, 3 due runs come first"


def test_a_worker_that_has_stopped_takes_nothing_more(connection: PgConnection) -> None:
    stopped(connection, "worker-1")
    failing = only_failing(connection, run_in(connection, Status.QUEUED)["id"])
    assert failing.message.startswith("no live worker takes noop from queue default: the last one ended ")
    assert failing.command == "rowcall worker run"
    lost = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 minute'")
    assert "no live worker serves queue default" in explain(connection, lost["id"], {}, HEARTBEAT).message


@pytest.mark.parametrize("status", FINAL)
def test_a_clone_is_proposed_only_where_it_is_possible(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status, natural_key="'fact'", unique_mode="'ever'")
    assert not any("clone" in command for command in explain(connection, run["id"], {}, HEARTBEAT).commands)
    if status is Status.SUCCEEDED:
        with pytest.raises(TransitionRefused, match="nothing, because a succeeded run is final, and its natural"):
            retry(connection, run["id"], OPERATOR)


@pytest.mark.parametrize(
    ("leases", "told"),
    [("1", "until a worker has no other suspect"), ("2", "then runs alone")],
)
def test_a_run_whose_lease_expired_waits_apart_from_the_others(
    connection: PgConnection, leases: str, told: str
) -> None:
    run = run_in(connection, Status.FAILED, queue="'line'", suspect=leases)
    other = run_in(connection, Status.QUEUED, queue="'line'")
    assert told in explain(connection, run["id"], {}, HEARTBEAT).message
    assert "first in queue line" in explain(connection, other["id"], {}, HEARTBEAT).message


def test_a_run_beside_a_suspect_that_runs_alone_waits_for_it_if_every_worker_does(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, queue="'line'")
    alone = run_in(connection, Status.RUNNING, suspect="2")
    assert f"runs a suspect alone (run {alone['id']})" in explain(connection, run["id"], {}, HEARTBEAT).message
    register(connection, Registration("worker-2", "host", 1, "1", None, ["noop"], 10))
    assert "first in queue line" in explain(connection, run["id"], {}, HEARTBEAT).message
    second = run_in(connection, Status.RUNNING, suspect="2", locked_by="'worker-2'")
    named = f"(runs {alone['id']}, {second['id']})"
    assert f"runs a suspect alone {named}" in explain(connection, run["id"], {}, HEARTBEAT).message


def test_a_run_that_is_not_due_yet(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, run_at="now() + interval '2 hours 5 minutes'")
    failing = only_failing(connection, run["id"])
    assert failing.name == "due"
    assert failing.message.startswith("not due until ")
    assert failing.message.endswith(", in 2 h 5 min")
    assert failing.command == f"rowcall runs run-now {run['id']}"


def test_a_run_that_waits_for_its_retry(connection: PgConnection) -> None:
    run = run_in(connection, Status.FAILED, run_at="now() + interval '90 seconds'", error_type="'SmtpDown'")
    message = only_failing(connection, run["id"]).message
    assert "waiting for its retry, after attempt 2 of 5 failed with SmtpDown" in message


def test_a_run_whose_queue_is_paused(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, queue="'mail'")
    pause_queue(connection, "mail", OPERATOR)
    failing = only_failing(connection, run["id"])
    assert "queue mail has been paused since" in failing.message
    assert failing.command == "rowcall queues resume mail"


def test_a_run_whose_queue_has_no_place_left_is_told_who_has_the_places(connection: PgConnection) -> None:
    first, second = (run_in(connection, Status.QUEUED, queue="'narrow'") for _ in range(2))
    limit_queue(connection, "narrow", 1, OPERATOR)
    assert "no place" not in explain(connection, second["id"], {}, HEARTBEAT).message
    claim_limited(connection, WORKER, ClaimRequest({"noop": 60}, 10, ["narrow"]))
    failing = only_failing(connection, second["id"])
    assert failing.message == f"queue narrow allows 1 at a time; 1 is running: {first['id']}"
    assert failing.command == "rowcall queues limit narrow 2"


def test_the_limit_of_a_type_holds_as_one_of_its_queue_does(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, queue="'typed'")
    assert (
        conditions(connection, run["id"], typed=3)["limit"].message == "queue typed allows 3 at a time; 0 are running"
    )
    assert "limit" not in conditions(connection, run["id"])


def test_where_the_types_own_limit_binds_no_command_is_told_that_would_change_nothing(connection: PgConnection) -> None:
    for _ in range(2):
        run = run_in(connection, Status.QUEUED, queue="'typed'")
    make_queues(connection, ["typed"])
    claim_limited(connection, WORKER, ClaimRequest({"noop": 60}, 10, ["typed"], {"typed": 1}))
    failing = only_failing(connection, run["id"], typed=1)
    assert failing.message.endswith("the limit is max_running of its job type, in the code")
    assert failing.command is None


@pytest.mark.parametrize(
    "change",
    [
        "heartbeat_at = now() - interval '101 seconds'",
        "heartbeat_at = now() - interval '151 seconds'",
        "queues = ARRAY['other']",
        "job_types = ARRAY['other']",
    ],
    ids=["two missed", "silent", "other queue", "other type"],
)
def test_a_run_that_no_live_worker_takes(connection: PgConnection, change: str) -> None:
    run = run_in(connection, Status.QUEUED)
    assert conditions(connection, run["id"])["worker"].holds
    fetch_all(connection, f"UPDATE rowcall.workers SET {change}")
    failing = only_failing(connection, run["id"])
    assert failing.message.startswith("no live worker takes noop from queue default")
    restricted = " --types noop --queues default" if "ARRAY" in change else ""
    assert failing.command == f"rowcall worker run{restricted}"


def test_a_worker_that_does_not_know_a_new_type_is_counted(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, job_type="'new_type'")
    assert only_failing(connection, run["id"]).message.endswith(
        ": 1 live worker serves other job types or queues (restart a worker after you add a job type)"
    )


def test_a_worker_that_missed_two_heartbeats_is_named_with_its_last_one(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED)
    lost = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'", locked_by="'dead'")
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_at = now() - interval '99 seconds'")
    assert conditions(connection, run["id"])["worker"].holds
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_at = now() - interval '101 seconds'")
    message = only_failing(connection, run["id"]).message
    assert "no live worker takes noop from queue default: worker-1 sent its last heartbeat at 2" in message
    assert message.endswith(", and should send one every 40 s")
    assert "no live worker serves queue default" in explain(connection, lost["id"], {}, HEARTBEAT).message


def test_an_effect_that_may_have_happened_is_resolved_before_a_retry(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD, error_type="'AmbiguousEffect'", last_error="'the email may be sent'")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert explained.message.endswith("AmbiguousEffect: the email may be sent")
    assert explained.commands == (f"rowcall effects list --run {run['id']} --state unknown",)


def test_a_run_without_attempts_left(connection: PgConnection) -> None:
    run = run_in(connection, Status.FAILED, attempts="5")
    failing = only_failing(connection, run["id"])
    assert failing.message == "5 of 5 attempts are used: no worker will claim it again"


def test_all_that_is_in_the_way_is_told_at_once(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, queue="'mail'", run_at="now() + interval '1 hour'")
    pause_queue(connection, "mail", OPERATOR)
    fetch_all(connection, "DELETE FROM rowcall.workers")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert [condition.name for condition in explained.conditions if not condition.holds] == ["due", "queue", "worker"]
    assert len(explained.commands) == 3


def test_a_run_whose_row_another_transaction_holds(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        register(connection, Registration("worker-1", "host", 1, "1", None, ["noop"], 10))
        run = run_in(connection, Status.QUEUED)
    with database.transaction(fresh_url) as holding, database.transaction(fresh_url) as connection:
        fetch_all(holding, "UPDATE rowcall.job_runs SET updated_at = now() WHERE id = %(id)s", run)
        assert only_failing(connection, run["id"]).name == "row"


def test_a_run_that_runs_is_told_who_has_it_and_how_to_end_it(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, started_at="now()")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert f"running on {WORKER} since" in explained.message
    assert explained.commands == (f"rowcall runs cancel {run['id']}",)
    fetch_all(connection, "UPDATE rowcall.job_runs SET cancel_requested_at = now()")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert "asked to stop" in explained.message
    assert explained.commands == (f"rowcall runs cancel {run['id']} --force",)
    fetch_all(connection, "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second', locked_by = 'dead'")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert "its lease expired" in explained.message
    assert explained.message.endswith("serves queue default ends the attempt within seconds, unless its row is locked")
    assert explained.commands == ()


def test_a_run_whose_lease_is_over_is_told_where_nobody_will_end_it(connection: PgConnection) -> None:
    expired = "now() - interval '1 second'"
    run = run_in(connection, Status.RUNNING, queue="'mail'", locked_until=expired, locked_by="'dead'")
    fetch_all(connection, "UPDATE rowcall.workers SET job_types = ARRAY['other']")
    assert "within seconds" in explain(connection, run["id"], {}, HEARTBEAT).message
    fetch_all(connection, "UPDATE rowcall.workers SET queues = ARRAY['other']")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert explained.message.endswith("and no live worker serves queue mail: the next one will end the attempt")
    assert explained.commands == ("rowcall worker run --queues mail",)


@pytest.mark.parametrize(
    ("status", "message", "commands"),
    [
        (Status.SUCCEEDED, "succeeded", ("clone",)),
        (Status.CANCELLED, "cancelled", ("retry", "clone")),
        (Status.DEAD, "on attempt 2 of 5: SmtpDown: no route", ("retry",)),
    ],
)
def test_a_run_that_has_ended_is_told_how(
    connection: PgConnection, status: Status, message: str, commands: tuple[str, ...]
) -> None:
    run = run_in(connection, status, error_type="'SmtpDown'", last_error="'no route'")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert message in explained.message
    assert explained.commands == tuple(f"rowcall runs {command} {run['id']}" for command in commands)
    assert explained.conditions == ()


@pytest.mark.parametrize("status", FINAL)
def test_a_run_that_was_pruned_is_told_how_it_ended_and_that_nothing_brings_it_back(
    connection: PgConnection, status: Status
) -> None:
    run = run_in(connection, status, error_type="'SmtpDown'", pruned_at="'2026-03-29 12:00+00'")
    explained = explain(connection, run["id"], {}, HEARTBEAT)
    assert "; payload pruned at 2026-03-29 1" in explained.message
    assert explained.commands == ()


@pytest.mark.parametrize("run_id", [0, -1, 2**63, 10**30])
def test_no_such_run(connection: PgConnection, run_id: int) -> None:
    with pytest.raises(RunNotFound):
        explain(connection, run_id, {}, HEARTBEAT)
