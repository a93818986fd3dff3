"""Why a run waits that was put off: by its handler, or because the broker has not taken its message."""

from __future__ import annotations

from datetime import UTC, datetime
from types import ModuleType

from marshmallow import Schema

from rowcall import JobType, celery, queue
from rowcall.base.database import PgConnection, fetch_all
from rowcall.job_types import Catalogue
from rowcall.queue import Explained, Lease
from rowcall.queue.claims.handover import holder_of
from rowcall.status import Status
from tests.support.rows import WORKER, run_in

LATER = datetime(2090, 1, 1, tzinfo=UTC)
AWAY = "the broker amqp://rabbit.example:5672// has not taken a message for queue celery: OperationalError: refused"


def catalogue() -> Catalogue:
    """Return a catalogue whose type `send` is handed over, and whose type `noop` is not."""
    module = ModuleType("shop.job_types")
    vars(module).update(
        SEND=JobType("send", schema=Schema, handover=celery("shop.tasks.send")), NOOP=JobType("noop", schema=Schema)
    )
    return Catalogue(module)


def explained(connection: PgConnection, run_id: int) -> Explained:
    return queue.explain(connection, run_id, {}, 30.0, catalogue())


def put_off(connection: PgConnection, job_type: str, reason: str, error_type: str) -> int:
    run = run_in(connection, Status.RUNNING, job_type=f"'{job_type}'")
    lease = Lease(WORKER, run["id"], run["lease_no"])
    pause = None if error_type == "NotHandedOver" else 1.0
    assert queue.snooze(connection, lease, LATER, reason, pause=pause, error_type=error_type) is Status.QUEUED
    run_id: int = run["id"]
    return run_id


def test_a_run_that_its_handler_snoozed_says_why(connection: PgConnection) -> None:
    run_id = put_off(connection, "noop", "the bank is closed", "Snooze")
    assert explained(connection, run_id).message.startswith("not due until 2090-01-01 00:00:00+00:00, in ")
    assert ": the bank is closed" in explained(connection, run_id).message
    fetch_all(connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1")
    assert "the bank" not in explained(connection, run_id).message


def test_runs_wait_behind_one_of_their_type_that_the_broker_has_not_taken(connection: PgConnection) -> None:
    put_off(connection, "send", AWAY, "NotHandedOver")
    behind = run_in(connection, Status.QUEUED, job_type="'send'")["id"]
    assert f"workers wait until the broker takes messages again: {AWAY}" in explained(connection, behind).message
    other = run_in(connection, Status.QUEUED)["id"]
    elsewhere = run_in(connection, Status.QUEUED, job_type="'send'", queue="'elsewhere'")["id"]
    for run_id in (other, elsewhere):
        assert "broker" not in explained(connection, run_id).message
    fetch_all(connection, "UPDATE rowcall.job_attempts SET ended_at = now() - interval '3 minutes'")
    assert "broker" not in explained(connection, behind).message


def test_a_run_that_the_broker_has_not_taken_says_so_and_is_due(connection: PgConnection) -> None:
    told = explained(connection, put_off(connection, "send", AWAY, "NotHandedOver"))
    assert f"workers wait until the broker takes messages again: {AWAY}" in told.message
    assert "not due" not in told.message
    assert not any("run-now" in command for command in told.commands)


def test_a_running_run_says_whether_a_consumer_has_begun_it(connection: PgConnection) -> None:
    holder = holder_of("mail", "shop.tasks.send")
    waits = run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", started_at="now()")["id"]
    told = explained(connection, waits)
    assert "a message for the Celery task shop.tasks.send in queue mail waits for a consumer" in told.message
    assert told.commands == (f"rowcall runs cancel {waits}",)
    begun = run_in(connection, Status.RUNNING, locked_by="'consumer host:7:abc'")["id"]
    assert explained(connection, begun).message.startswith("running on consumer host:7:abc")
    over = run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", locked_until="now() - interval '1 minute'")["id"]
    assert (
        "handed over and not begun by a consumer, attempt 2; its lease expired at"
        in explained(connection, over).message
    )


def test_a_message_whose_run_is_to_be_cancelled_waits_unless_it_is_cancelled_by_force(connection: PgConnection) -> None:
    holder = holder_of("mail", "shop.tasks.send")
    run_id = run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", cancel_requested_at="now()")["id"]
    told = explained(connection, run_id)
    assert told.commands == (f"rowcall runs cancel {run_id} --force",)
    assert ", it is cancelled, as was asked at " in told.message
