"""`rowcall doctor`: whether runs can be handed over; tests/handover asks a real RabbitMQ."""

from __future__ import annotations

from types import ModuleType

from marshmallow import Schema

from rowcall import JobType, celery
from rowcall.base import settings
from rowcall.cli.doctor.finding import Finding
from rowcall.cli.doctor.handover import handover
from rowcall.job_types.catalogue import Catalogue

SEND = JobType("send", schema=Schema, handover=celery("app.send", queue="mail"))


def examined(url: str, job_type: JobType = SEND) -> list[Finding]:
    """Return what doctor says of an app with this job type and this broker."""
    app = ModuleType("app")
    vars(app)["TYPE"] = job_type
    return [*handover(Catalogue(app), settings.read({"ROWCALL_BROKER_URL": url}))]


def test_without_a_type_that_hands_over_nothing_is_said_of_the_broker() -> None:
    assert examined("amqp://127.0.0.1:1//", JobType("stay", schema=Schema)) == []


def test_the_url_of_the_broker_is_missing() -> None:
    [found] = examined("")
    assert (found.subject, found.good) == ("hand-over", False)
    assert found.message.startswith("job type 'send' hands its runs over to Celery: set ROWCALL_BROKER_URL")


def test_the_package_of_a_broker_is_missing() -> None:
    [found] = examined("mongodb://127.0.0.1:1/0")
    assert not found.good
    assert "ROWCALL_BROKER_URL cannot be used" in found.message
    assert "pip install 'kombu[redis]'" in found.message


def test_a_broker_that_does_not_answer_is_named_without_its_password() -> None:
    [found] = examined("amqp://ada:hush@127.0.0.1:1//")
    assert not found.good
    assert found.message.startswith("the broker amqp://ada:**@127.0.0.1:1// does not answer (OperationalError: ")
    assert found.message.endswith("start it, or correct ROWCALL_BROKER_URL")


def test_a_broker_that_takes_any_name_of_a_queue_is_not_asked_for_queues() -> None:
    [found] = examined("memory://ada:hush@here//")
    assert found.good
    assert found.message == (
        "the broker memory://ada:**@here// answers; queues: mail;"
        " this kind of broker takes any name, so whether they are right was not checked"
    )
