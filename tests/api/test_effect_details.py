"""GET /v1/effects/{kind}/{id} has what an operator looks for elsewhere before resolving the effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.effects.erase import erase_details
from tests.api.conftest import Call, told


@pytest.fixture
def rows(module_url: str) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    yield connection
    connection.close()


def inserted(rows: PgConnection, kind: str, columns: str, values: str) -> int:
    [row] = fetch_all(
        rows,
        f"INSERT INTO rowcall.{kind} ({columns}, run_id, lease_no, content_hash, state)"
        f" VALUES ({values}, 7, 1, '', 'unknown') RETURNING id",
    )
    effect_id: int = row["id"]
    return effect_id


def details(call: Call, kind: str, effect_id: int) -> dict[str, Any]:
    shown: dict[str, Any] = told(call("GET", f"/v1/effects/{kind}/{effect_id}", scope="read"))["details"]
    return shown


def test_an_email_has_its_recipient_and_message_id_until_it_is_erased(call: Call, rows: PgConnection) -> None:
    email = inserted(rows, "sent_emails", "idempotency_key, recipient, subject", "'m', 'ada@example.com', 'Hi'")
    shown = details(call, "sent_emails", email)
    message_id = shown.pop("message_id")
    assert message_id.startswith(f"<sent_emails.{email}.")
    assert shown == {"idempotency_key": "m", "recipient": "ada@example.com", "subject": "Hi"}
    erase_details(rows, [7])
    assert details(call, "sent_emails", email) == {"idempotency_key": "m", "message_id": message_id}


def test_a_payment_has_its_amount(call: Call, rows: PgConnection) -> None:
    columns = "idempotency_key, invoice_id, amount_minor, currency"
    payment = inserted(rows, "payments", columns, "'charge:7', 7, 1250, 'EUR'")
    assert details(call, "payments", payment) == {
        "idempotency_key": "charge:7",
        "invoice_id": 7,
        "amount_minor": 1250,
        "currency": "EUR",
    }


def test_a_kind_of_the_app_has_its_key(call: Call, rows: PgConnection) -> None:
    assert details(call, "sms", inserted(rows, "other_effects", "kind, key", "'sms', 'text:7'")) == {"key": "text:7"}


@pytest.mark.parametrize(("scope", "status"), [("read", 200), ("operate", 403), ("enqueue", 403)])
def test_it_needs_the_scope_read(call: Call, rows: PgConnection, scope: str, status: int) -> None:
    email = inserted(rows, "sent_emails", "idempotency_key", f"'scope:{scope}'")
    assert call("GET", f"/v1/effects/sent_emails/{email}", scope=scope).status_code == status
