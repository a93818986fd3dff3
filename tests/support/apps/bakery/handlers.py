"""The bakery's handlers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import flask

from rowcall import Permanent, Retry, Run, Snooze

from .job_types import BAKE, CHARGE, CLEAN, NARROW, NOTIFY, PRINT, REMIND, SMS


@BAKE.handler
def bake(run: Run) -> object:
    """End as the payload says."""
    ends = run.payload["ends"]
    if ends in ERRORS:
        raise ERRORS[ends]
    if ends in RESULTS:
        return RESULTS[ends]
    if ends in WORK:
        return WORK[ends](run)
    run.log.info("loaf baked", loaf_id=run.payload["loaf_id"])
    return {"baked": run.payload["loaf_id"], "attempt": run.attempt}


ERRORS = {
    "badly": ValueError("the loaf is burnt"),
    "from its base": GeneratorExit("the fire is out"),
    "interrupted": KeyboardInterrupt("the baker left"),
    "for good": Permanent("no flour"),
    "later": Retry("the oven is cold", after=1800),
    "not yet": Snooze(datetime.now(UTC) + timedelta(hours=4)),
}

RESULTS = {"unstorable": {1, 2}, "too large": "x" * 70_000}


def in_the_table(run: Run) -> None:
    """Insert a row and commit it with the success."""
    with run.transaction({"baked": 1}) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO loaves VALUES (%s)", (run.payload["loaf_id"],))


def with_another(run: Run) -> None:
    """Enqueue a run of another type."""
    with run.step() as connection:
        REMIND.enqueue(connection, {"loaf_id": run.payload["loaf_id"]})


def over_and_over(run: Run) -> None:
    """Enqueue the next loaf."""
    with run.step() as connection:
        BAKE.enqueue(connection, {**run.payload, "loaf_id": run.payload["loaf_id"] + 1})


def texted(run: Run) -> dict[str, object]:
    """Send a text message, a kind of effect that only the bakery has."""
    sent = run.effect(SMS, key=f"baked:{run.payload['loaf_id']}", content={}, perform=lambda effect: effect.event_id)
    return {"reference": sent.reference}


WORK: dict[str, Callable[[Run], object]] = {
    "in Flask": lambda run: {"in Flask": flask.has_app_context()},
    "in the table": in_the_table,
    "with another": with_another,
    "over and over": over_and_over,
    "unknown effect": lambda run: run.effect("sent_pigeons", key="1", content={}, perform=lambda effect: None),
    "with a text": texted,
}


@REMIND.handler
def remind(run: Run) -> None:
    """Send an email."""
    run.effect(
        "sent_emails",
        key=f"remind:{run.payload['loaf_id']}",
        content={"loaf": run.payload["loaf_id"]},
        perform=lambda effect: run.gateways.mail.send(
            to="ada@example.com", subject="Käse & Brot", text="It is ready.\n", message_id=effect.message_id
        ),
    )


@CHARGE.handler
def charge(run: Run) -> None:
    """Charge the customer."""

    def perform(effect: object) -> str:
        amount = run.payload["loaf_id"] * 100
        return run.gateways.payment.charge(
            amount=amount, currency="eur", customer="cus_1", reference="a loaf", idempotency_key=f"loaf:{amount}"
        ).id

    run.effect("payments", key=f"loaf:{run.payload['loaf_id']}", content={}, perform=perform)


@NOTIFY.handler
def notify(run: Run) -> None:
    """Send a webhook to the café."""
    url = "http://127.0.0.1:1/" if run.payload["ends"] == "at home" else "https://cafe.example/loaves"
    run.effect(
        "delivered_webhooks",
        key=f"loaf-{run.payload['loaf_id']}",
        content={},
        perform=lambda effect: run.gateways.webhook.deliver(
            url=url, event_id=effect.event_id, payload={"loaf": run.payload["loaf_id"]}
        ),
    )


@PRINT.handler
def print_label(run: Run) -> None:
    """Write the loaf's label to a file."""
    run.gateways.files.write(f"labels/{run.payload['loaf_id']}.txt", b"Sourdough")


@NARROW.handler
def narrow(run: Run) -> None:
    """Do nothing; the type's limit is one at a time."""


@CLEAN.handler
def clean(run: Run) -> dict[str, str]:
    """Return the day of the payload."""
    return {"cleaned": run.payload["day"]}
