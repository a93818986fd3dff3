"""A key that is limited to job types or queues sees only the buttons that it may press, and the others are refused."""

from __future__ import annotations

import flask
import pytest

from rowcall import definitions
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.access.caller import Limits
from rowcall.base.database import PgConnection, fetch_value
from rowcall.job_types import catalogue
from rowcall.status import Status
from tests.page.visits import Visit
from tests.support.failures import failed
from tests.support.rows import run_in

MAKER = Operator("tests")
SCOPES = ["read", "operate", "enqueue"]

UNKNOWN = """
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)
VALUES ('mail:' || %(run_id)s, %(run_id)s, 1, '', 'unknown') RETURNING id
"""


@pytest.fixture
def mailer(committed: PgConnection, app: flask.Flask) -> Visit:
    """Sign in an operator of the emails, which are in the queue mail."""
    limits = Limits(["send_invoice_email"], ["mail"])
    name = f"mailer {len(api_keys.list_keys(committed))}"
    return Visit(app, api_keys.create_key(committed, name, SCOPES, MAKER, limits=limits))


def buttons(visitor: Visit, path: str) -> set[str]:
    """Return the buttons of a screen, without those that every screen has."""
    return visitor.get(path).forms.keys() - visitor.get("/nowhere").forms.keys() - {"Preview"}


def test_a_queue_of_others_has_no_buttons(committed: PgConnection, app: flask.Flask) -> None:
    limits = Limits(queues=["mail"])
    visitor = Visit(app, api_keys.create_key(committed, "queue mail", SCOPES, MAKER, limits=limits))
    assert "Pause the queue mail" in buttons(visitor, "/queues/mail")
    assert not buttons(visitor, "/queues/default")
    assert visitor.post("/queues/default/pause").status == 403


def test_a_definition_of_others_has_no_buttons(mailer: Visit, committed: PgConnection) -> None:
    payload = {"invoice_id": 1, "kind": "due"}
    for name, content in (
        ("others", {"job_type": "noop"}),
        ("own", {"job_type": "send_invoice_email", "payload": payload}),
    ):
        checked = definitions.checked(name, content, catalogue())
        definitions.put(committed, name, checked, catalogue(), "api", MAKER)
    assert buttons(mailer, "/definitions/own") == {"Pause own", "Run own now"}
    assert not buttons(mailer, "/definitions/others")
    assert mailer.post("/definitions/others/pause").status == 403
    assert mailer.post("/definitions/others/run-now").status == 403


def test_an_effect_of_others_has_no_form(mailer: Visit, committed: PgConnection) -> None:
    others = run_in(committed, Status.DEAD)["id"]
    own = run_in(committed, Status.DEAD, job_type="'send_invoice_email'", queue="'mail'")["id"]
    effects = {run: fetch_value(committed, UNKNOWN, {"run_id": run}) for run in (own, others)}
    assert "Record the outcome" in buttons(mailer, f"/effects/sent_emails/{effects[own]}")
    assert not buttons(mailer, f"/effects/sent_emails/{effects[others]}")
    assert mailer.post(f"/effects/sent_emails/{effects[others]}/resolve", happened="no").status == 403


def test_only_the_own_groups_of_failures_lead_to_a_retry(committed: PgConnection, app: flask.Flask) -> None:
    limits = Limits(["send_invoice_email"])
    visitor = Visit(app, api_keys.create_key(committed, "emails", SCOPES, MAKER, limits=limits))
    failed(committed, status=Status.DEAD)
    failed(committed, status=Status.DEAD, job_type="'send_invoice_email'")
    [group] = [link for link in visitor.get("/failures").links if "/operations/new" in link]
    assert "job_type=send_invoice_email" in group
    other = "/failures/attempts?job_type=noop&error_type=ValueError"
    assert not [link for link in visitor.get(other).links if "/operations/new" in link]
