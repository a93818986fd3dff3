"""The external service dies, is slow or is cut off at each step: how the first attempt and the next one end."""

from __future__ import annotations

import pytest

from tests.example.saas import Saas
from tests.support.processes import rowcall
from tests.support.servers.mail import DROP, LATE, SILENT
from tests.support.servers.web import (
    Behaviour,
    answers,
    drips_the_head,
    leaves_before_answering,
    leaves_before_reading,
    says_half,
    says_half_of_the_body,
    says_it_twice,
    says_nothing,
)

# Short timeouts for a service that does not answer; otherwise the defaults, because the machine may be busy.
HASTY = {"ROWCALL_MAIL_TIMEOUT": "2", "ROWCALL_WEBHOOK_TIMEOUT": "2", "ROWCALL_PAYMENT_TIMEOUT": "2"}

# After the first attempt and after the second: the run's status, the effect's state, and how often it has happened.
Ends = tuple[str, str, int]
ONCE_LATER = (("failed", "refused", 0), ("succeeded", "applied", 1))
NEVER = (("dead", "refused", 0), ("dead", "refused", 0))
NOBODY_KNOWS = (("dead", "unknown", 1), ("dead", "unknown", 1))
AT_ONCE = (("succeeded", "applied", 1), ("succeeded", "applied", 1))


def after(saas: Saas, run_id: int, kind: str) -> Ends:
    [state] = saas.states(kind)
    return saas.row(run_id)["status"], state, saas.happened(kind)


def two_attempts(saas: Saas, job_type: str, kind: str, how: str | Behaviour) -> tuple[Ends, Ends]:
    """Let one worker try, and then another one."""
    run_id = saas.ask_for(job_type)
    saas.attempt(**HASTY if how in {SILENT, LATE, says_nothing, drips_the_head} else {})
    first = after(saas, run_id, kind)
    saas.try_again_now()
    saas.work()
    return first, after(saas, run_id, kind)


@pytest.mark.parametrize(
    ("step", "how", "ends"),
    [
        *((step, DROP, ONCE_LATER) for step in ("greeting", "EHLO", "MAIL", "RCPT", "DATA")),
        ("RCPT", SILENT, ONCE_LATER),
        ("RCPT", "450 4.2.1 later", ONCE_LATER),
        ("RCPT", "550 5.1.1 no such user", NEVER),
        ("dot", "451 4.3.0 later", ONCE_LATER),
        ("dot", "554 5.7.1 spam", NEVER),
        ("dot", LATE, AT_ONCE),
        ("dot", DROP, NOBODY_KNOWS),
        ("dot", SILENT, NOBODY_KNOWS),
        ("QUIT", DROP, AT_ONCE),
    ],
)
def test_a_mail_is_sent_at_most_once_whatever_the_mail_server_does(
    saas: Saas, step: str, how: str, ends: tuple[Ends, Ends]
) -> None:
    saas.mail.misbehave(step, how)
    assert two_attempts(saas, "send_invoice_email", "sent_emails", how) == ends


def test_a_mail_waits_for_a_mail_server_that_is_gone(saas: Saas) -> None:
    run_id = saas.ask_for("send_weekly_report")
    saas.attempt(ROWCALL_SMTP_URL="smtp://127.0.0.1:9?starttls=never")
    assert after(saas, run_id, "sent_emails") == ONCE_LATER[0]
    saas.try_again_now()
    saas.work()
    assert after(saas, run_id, "sent_emails") == ONCE_LATER[1]


AGAIN = (("failed", "intent", 1), ("succeeded", "applied", 2))
# What may have happened is not called refused, even if it did not happen.
MAYBE = (("failed", "intent", 0), ("succeeded", "applied", 1))


@pytest.mark.parametrize(
    ("behaviour", "ends"),
    [
        (leaves_before_reading, MAYBE),
        (leaves_before_answering, AGAIN),
        (says_half, AGAIN),
        (says_nothing, AGAIN),
        (drips_the_head, AGAIN),
        (answers(503, Retry_After="7"), AGAIN),
        (answers(410), (("dead", "refused", 1), ("dead", "refused", 1))),
        (answers(302, Location="http://127.0.0.1/"), (("dead", "refused", 1), ("dead", "refused", 1))),
        (says_it_twice, AT_ONCE),
    ],
)
def test_an_event_is_delivered_at_least_once_whatever_the_receiver_does(
    saas: Saas, behaviour: Behaviour, ends: tuple[Ends, Ends]
) -> None:
    saas.receiver.misbehave(behaviour)
    assert two_attempts(saas, "deliver_webhook", "delivered_webhooks", behaviour) == ends
    assert {request.headers["webhook-id"] for request in saas.receiver.requests} == {"evt_1"}


def test_a_receiver_that_names_a_time_is_left_alone_until_then(saas: Saas) -> None:
    saas.receiver.misbehave(answers(503, Retry_After="600"))
    run_id = saas.ask_for("deliver_webhook")
    saas.work()
    wait = saas.row(run_id)["run_at"] - saas.row(run_id)["failed_at"]
    assert wait.total_seconds() == 600


CHARGED_ONCE = (("failed", "intent", 1), ("succeeded", "applied", 1))


@pytest.mark.parametrize(
    ("behaviour", "ends"),
    [
        (leaves_before_reading, MAYBE),
        (leaves_before_answering, CHARGED_ONCE),
        (says_half, CHARGED_ONCE),
        (says_half_of_the_body, CHARGED_ONCE),
        (says_nothing, CHARGED_ONCE),
        (answers(500), CHARGED_ONCE),
        (says_it_twice, AT_ONCE),
    ],
)
def test_a_payment_is_charged_once_whatever_the_provider_does(
    saas: Saas, behaviour: Behaviour, ends: tuple[Ends, Ends]
) -> None:
    saas.provider.misbehave(behaviour)
    assert two_attempts(saas, "charge_invoice", "payments", behaviour) == ends
    assert {request.headers["Idempotency-Key"] for request in saas.provider.requests} == {"invoice_charge:1"}


def test_a_declined_charge_is_tried_under_another_key_when_an_operator_asks_for_it(saas: Saas) -> None:
    saas.provider.declined_customers.add("user-1")
    run_id = saas.ask_for("charge_invoice")
    saas.work()
    assert (saas.row(run_id)["error_type"], after(saas, run_id, "payments")) == ("Declined", NEVER[0])
    saas.provider.declined_customers.clear()
    rowcall(saas.environment, "runs", "retry", str(run_id))
    saas.work()
    assert after(saas, run_id, "payments") == ("succeeded", "applied", 1)
    keys = [request.headers["Idempotency-Key"] for request in saas.provider.requests]
    assert keys == ["invoice_charge:1", "invoice_charge:1:2"]


def test_a_charge_of_another_amount_is_loud_and_left_to_an_operator(saas: Saas) -> None:
    saas.provider.surcharge = 100
    run_id = saas.ask_for("charge_invoice")
    saas.work()
    assert after(saas, run_id, "payments") == ("dead", "unknown", 1)
    run = saas.row(run_id)
    assert run["error_type"] == "WrongCharge"
    assert "4900" in run["last_error"]
    assert "5000" in run["last_error"]
    assert saas.value("SELECT status FROM example.invoices") == "open"


def test_a_webhook_to_a_blocked_address_is_dead_and_never_sent(saas: Saas) -> None:
    run_id = saas.ask("deliver_webhook", event_id="evt_2", url="http://169.254.169.254/latest", body={})
    saas.work()
    assert (saas.row(run_id)["status"], saas.row(run_id)["error_type"]) == ("dead", "Blocked")
    assert saas.states("delivered_webhooks") == ["refused"]
