"""Kill a worker in every gap between intent, call, answer, applied and finish, and see what the next attempt does."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable

import pytest

from tests.example.saas import Saas
from tests.support.gate import Gate
from tests.support.processes import LIMIT_SECONDS, begin, rowcall, running, wait_until
from tests.support.servers.mail import SILENT
from tests.support.servers.web import Exchange


class LeaseRenewal:
    """A server's behaviour for one request: it signals that the request came, and continues when it may."""

    def __init__(self, after_work: bool) -> None:
        self.came = threading.Event()
        self.may_go_on = threading.Event()
        self._after_work = after_work

    def __call__(self, exchange: Exchange) -> None:
        answer = exchange.work() if self._after_work else b""
        self.came.set()
        assert self.may_go_on.wait(LIMIT_SECONDS)
        exchange.send(answer or exchange.work())


KIND_OF = {
    "send_weekly_report": "sent_emails",
    "send_invoice_email": "sent_emails",
    "charge_invoice": "payments",
    "deliver_webhook": "delivered_webhooks",
    "build_sales_report": "generated_files",
}


def hold_in_database(gap: str, barred: Gate, kind: str) -> Callable[[], object]:
    """Make the worker wait in this gap; return a function that waits until it does."""
    if gap == "before the intent":
        barred.hold_commit(kind)
    elif gap == "before applied":
        barred.hold_change("NEW.state = 'applied'", kind)
    else:
        barred.hold_change("NEW.status = 'succeeded'")
    return barred.wait


def hold_at_server(gap: str, saas: Saas, kind: str) -> Callable[[], object]:
    """The same for the gaps at the external service."""
    after_work = gap == "before the answer"
    if kind == "sent_emails":
        step = "dot" if after_work else "greeting"
        saas.mail.misbehave(step, SILENT)
        return lambda: wait_until(lambda: step not in saas.mail.plans, f"the mail server is silent at the {step}")
    held = LeaseRenewal(after_work)
    {"payments": saas.provider, "delivered_webhooks": saas.receiver}[kind].misbehave(held)
    return lambda: held.came.wait(LIMIT_SECONDS)


def killed_in(gap: str, saas: Saas, barred: Gate, job_type: str) -> int:
    """Return a run whose worker was killed in this gap."""
    kind = KIND_OF[job_type]
    at_server = gap in ("before the call", "before the answer")
    wait = hold_at_server(gap, saas, kind) if at_server else hold_in_database(gap, barred, kind)
    run_id = saas.ask_for(job_type)
    worker = begin(saas.environment, "worker", "run")
    try:
        wait()
    finally:
        worker.kill()
        worker.communicate()
    barred.turn_away()
    return run_id


# For each gap: the run's status after the next attempt, the effect's state, and how often it has happened.
MAIL = {
    "before the intent": ("succeeded", "applied", 1),
    "before the call": ("dead", "unknown", 0),
    "before the answer": ("dead", "unknown", 1),
    "before applied": ("dead", "unknown", 1),
    "before the finish": ("succeeded", "applied", 1),
}
PAYMENT = dict.fromkeys(MAIL, ("succeeded", "applied", 1))
WEBHOOK = {
    "before the intent": ("succeeded", "applied", 1),
    "before the call": ("succeeded", "applied", 1),
    "before the answer": ("succeeded", "applied", 2),
    "before applied": ("succeeded", "applied", 2),
    "before the finish": ("succeeded", "applied", 1),
}
BOUNDS = [
    *(("send_weekly_report", gap, bound) for gap, bound in MAIL.items()),
    *(("send_invoice_email", gap, bound) for gap, bound in MAIL.items()),
    *(("charge_invoice", gap, bound) for gap, bound in PAYMENT.items()),
    *(("deliver_webhook", gap, bound) for gap, bound in WEBHOOK.items()),
]


@pytest.mark.parametrize(("job_type", "gap", "bound"), BOUNDS)
def test_a_worker_killed_in_a_gap_keeps_the_bound_of_the_policy(
    saas: Saas, barred: Gate, job_type: str, gap: str, bound: tuple[str, str, int]
) -> None:
    run_id, kind = killed_in(gap, saas, barred, job_type), KIND_OF[job_type]
    saas.try_again_now()
    saas.work()
    assert (saas.row(run_id)["status"], saas.states(kind), saas.happened(kind)) == (bound[0], [bound[1]], bound[2])


@pytest.mark.parametrize("gap", ["before the intent", "before applied", "before the finish"])
def test_a_file_is_whole_and_the_one_that_the_ledger_names_whenever_its_worker_was_killed(
    saas: Saas, barred: Gate, gap: str
) -> None:
    run_id = killed_in(gap, saas, barred, "build_sales_report")
    saas.try_again_now()
    saas.work()
    assert saas.row(run_id)["status"] == "succeeded"
    rows = saas.sql("SELECT path, sha256, state FROM rowcall.generated_files ORDER BY key")
    assert [(row["path"], row["state"]) for row in rows] == [
        ("sales_report/2026-03-24.csv", "applied"),
        ("sales_report/2026-03-24.pdf", "applied"),
    ]
    for row in rows:
        assert hashlib.sha256((saas.files / row["path"]).read_bytes()).hexdigest() == row["sha256"]


def test_an_operator_finds_out_and_the_mail_is_sent_after_all(saas: Saas, barred: Gate) -> None:
    run_id = killed_in("before the call", saas, barred, "send_invoice_email")
    saas.try_again_now()
    saas.work()
    run = saas.row(run_id)
    assert run["error_type"] == "AmbiguousEffect"
    assert "rowcall effects resolve sent_emails 1 --happened" in run["last_error"]
    listed = json.loads(rowcall(saas.environment, "effects", "list", "--state", "unknown", "--json").stdout)
    assert [(row["kind"], row["id"], row["run_id"]) for row in listed] == [("sent_emails", 1, run_id)]
    resolved = rowcall(saas.environment, "effects", "resolve", "sent_emails", "1", "--did-not-happen")
    assert resolved.stdout == (
        f"effect 1 of sent_emails is recorded as not having happened: the next attempt of run {run_id} performs it\n"
    )
    rowcall(saas.environment, "runs", "retry", str(run_id))
    saas.work()
    assert (saas.row(run_id)["status"], len(saas.mail.mails)) == ("succeeded", 1)


def test_an_operator_finds_out_and_the_mail_is_not_sent_again(saas: Saas, barred: Gate) -> None:
    run_id = killed_in("before applied", saas, barred, "send_weekly_report")
    saas.try_again_now()
    saas.work()
    rowcall(saas.environment, "effects", "resolve", "sent_emails", "1", "--happened", "--reference", "seen in the log")
    rowcall(saas.environment, "runs", "retry", str(run_id))
    saas.work()
    assert (saas.row(run_id)["status"], len(saas.mail.mails)) == ("succeeded", 1)
    assert saas.row(run_id)["result"]["sent"] == "seen in the log"
    assert saas.states("sent_reports") == ["applied"]


def test_every_try_of_an_event_carries_the_same_id(saas: Saas, barred: Gate) -> None:
    killed_in("before the answer", saas, barred, "deliver_webhook")
    saas.try_again_now()
    saas.work()
    first, second = saas.receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "evt_1"
    assert first.body == second.body == b'{"paid":1}'


def test_a_charge_is_repeated_under_its_key_and_money_moves_once(saas: Saas, barred: Gate) -> None:
    killed_in("before the answer", saas, barred, "charge_invoice")
    saas.try_again_now()
    saas.work()
    keys = [request.headers["Idempotency-Key"] for request in saas.provider.requests]
    assert keys == ["invoice_charge:1", "invoice_charge:1"]
    assert (len(saas.provider.charges), saas.value("SELECT status FROM example.invoices")) == (1, "paid")


def test_a_charge_is_not_repeated_when_the_provider_may_have_forgotten_it(saas: Saas, barred: Gate) -> None:
    run_id = killed_in("before the answer", saas, barred, "charge_invoice")
    saas.provider.let_time_pass(25 * 3600)
    saas.sql("UPDATE rowcall.payments SET intent_at = now() - interval '25 hours'")
    saas.try_again_now()
    saas.work()
    assert (saas.row(run_id)["status"], saas.states("payments")) == ("dead", ["unknown"])
    assert len(saas.provider.charges) == 1


PAID = "UPDATE example.invoices SET status = 'paid', paid_at = now()"


def test_an_invoice_that_is_paid_otherwise_while_it_is_charged_is_loud(saas: Saas) -> None:
    held = LeaseRenewal(after_work=True)
    saas.provider.misbehave(held)
    run_id = saas.ask_for("charge_invoice")
    with running(saas.environment, "worker", "run"):
        assert held.came.wait(LIMIT_SECONDS)
        saas.sql(PAID)
        held.may_go_on.set()
        saas.wait(run_id, "dead")
    assert saas.row(run_id)["last_error"] == (
        "invoice R-1 was paid twice: by the charge of this run (pi_1: 4900 EUR minor units), and by another payment"
        " in the meantime: refund one of the two"
    )


@pytest.mark.parametrize(
    ("gap", "complaint"),
    [
        ("before the finish", "invoice R-1 was paid twice: by the charge of this run (pi_1: 4900 EUR minor units)"),
        ("before the answer", "invoice R-1 is paid, and it is not known whether this run has charged it too"),
    ],
)
def test_an_invoice_that_is_paid_otherwise_after_it_was_charged_is_loud_and_not_charged_again(
    saas: Saas, barred: Gate, gap: str, complaint: str
) -> None:
    run_id = killed_in(gap, saas, barred, "charge_invoice")
    saas.sql(PAID)
    saas.try_again_now()
    saas.work()
    run = saas.row(run_id)
    assert (run["status"], run["last_error"].startswith(complaint)) == ("dead", True), run["last_error"]
    assert len(saas.provider.requests) == 1


# As if the type had no natural key: then the ledger of effects is the second safeguard.
NO_NATURAL_KEYS = "UPDATE rowcall.job_runs SET natural_key = NULL RETURNING id"


def test_two_runs_with_one_payment_key_make_one_charge(saas: Saas) -> None:
    held = LeaseRenewal(after_work=True)
    saas.provider.misbehave(held)
    first = saas.ask_for("charge_invoice")
    with running(saas.environment, "worker", "run"):
        assert held.came.wait(LIMIT_SECONDS)
        saas.sql(NO_NATURAL_KEYS)
        asked = rowcall(saas.environment, "enqueue", "charge_invoice", '{"invoice_id": 1}', "--key", "again", "--json")
        second = json.loads(asked.stdout)["run_id"]
        tried = f"SELECT outcome, error FROM rowcall.job_attempts WHERE run_id = {second}"
        wait_until(lambda: saas.sql(tried), "the second run meets the first")
        assert saas.sql(tried) == [
            {"outcome": "snooze", "error": f"run {first} is performing payments 'invoice_charge:1' now"}
        ]
        # Waiting is free: all its attempts are left.
        assert saas.row(second)["attempts"] == 0
        held.may_go_on.set()
        saas.wait(first, "succeeded")
        saas.try_again_now()
        saas.wait(second, "succeeded")
    assert (len(saas.provider.charges), saas.states("payments")) == (1, ["applied"])


def test_the_same_key_with_other_content_is_refused(saas: Saas) -> None:
    saas.ask_for("deliver_webhook")
    saas.work()
    saas.sql(NO_NATURAL_KEYS)
    other = {"event_id": "evt_1", "url": f"{saas.receiver.url}/hook", "body": {"paid": 2}}
    asked = rowcall(saas.environment, "enqueue", "deliver_webhook", json.dumps(other), "--key", "other", "--json")
    saas.work()
    run = saas.row(json.loads(asked.stdout)["run_id"])
    assert (run["status"], run["error_type"], len(saas.receiver.requests)) == ("dead", "EffectConflict", 1)
