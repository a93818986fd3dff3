"""Invoices: three reminders on three days, and one payment."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_one
from rowcall_example.errors import InvoiceNotFound
from rowcall_example.queries import Marked, Reminder, ReminderKind, due_invoices, invoice_with_user, mark_paid
from tests.example.queries.rows import invoice, user

DAY = date(2026, 11, 20)


def reminders(connection: PgConnection, after_id: int = 0, limit: int = 100) -> list[Reminder]:
    return due_invoices(connection, DAY, after_id, limit)


def test_a_reminder_is_due_three_days_before_on_the_day_and_a_week_after(connection: PgConnection) -> None:
    user_id = user(connection)
    made = [
        invoice(connection, user_id, due_on)
        for due_on in ("2026-11-22", "2026-11-23", "2026-11-24", "2026-11-19", "2026-11-20", "2026-11-21")
    ]
    late = [invoice(connection, user_id, due_on) for due_on in ("2026-11-12", "2026-11-13", "2026-11-14")]
    assert reminders(connection) == [
        Reminder(made[1], ReminderKind.UPCOMING),
        Reminder(made[4], ReminderKind.DUE),
        Reminder(late[1], ReminderKind.OVERDUE),
    ]


def test_what_is_paid_or_void_is_not_reminded_of(connection: PgConnection) -> None:
    user_id = user(connection)
    invoice(connection, user_id, "2026-11-20", status="paid", paid_at="2026-11-01 00:00+00")
    invoice(connection, user_id, "2026-11-20", status="void")
    assert reminders(connection) == []


def test_pages_go_by_id_and_miss_none(connection: PgConnection) -> None:
    user_id = user(connection)
    ids = [invoice(connection, user_id, due_on) for due_on in ("2026-11-20", "2026-11-13", "2026-11-23") * 3]
    paged: list[int] = []
    while page := reminders(connection, paged[-1] if paged else 0, limit=2):
        paged += [reminder.invoice_id for reminder in page]
    assert paged == ids


def test_an_invoice_comes_with_its_user(connection: PgConnection) -> None:
    user_id = user(connection, "Europe/Istanbul", name="Ünal", email="u@example.com")
    told = invoice_with_user(connection, invoice(connection, user_id, "2026-11-20", number="INV-7", currency="JPY"))
    assert (told.number, told.amount_minor, told.currency, told.status, told.due_on) == (
        "INV-7", 123450, "JPY", "open", DAY,
    )  # fmt: skip
    assert (told.user.id, told.user.name, told.user.email, told.user.time_zone) == (
        user_id, "Ünal", "u@example.com", "Europe/Istanbul",
    )  # fmt: skip


def test_an_invoice_that_is_not_there_is_named(connection: PgConnection) -> None:
    for ask in (lambda: invoice_with_user(connection, 404404), lambda: mark_paid(connection, 404404, 1, "EUR")):
        with pytest.raises(InvoiceNotFound, match="there is no invoice 404404"):
            ask()


@pytest.mark.parametrize(
    ("columns", "amount_minor", "currency", "answer"),
    [
        ({}, 123450, "EUR", Marked.PAID),
        ({}, 123451, "EUR", Marked.OTHER_AMOUNT),
        ({}, 123450, "USD", Marked.OTHER_AMOUNT),
        ({"status": "void"}, 123450, "EUR", Marked.VOID),
        ({"status": "paid", "paid_at": "2026-11-01 00:00+00"}, 123450, "EUR", Marked.ALREADY_PAID),
    ],
)
def test_only_an_open_invoice_of_this_amount_becomes_paid_and_the_answer_says_why_not(
    connection: PgConnection, columns: dict[str, Any], amount_minor: int, currency: str, answer: Marked
) -> None:
    invoice_id = invoice(connection, user(connection), "2026-11-20", **columns)
    before = invoice_with_user(connection, invoice_id)
    assert mark_paid(connection, invoice_id, amount_minor, currency) is answer
    after = invoice_with_user(connection, invoice_id)
    if answer is Marked.PAID:
        assert (after.status, after.paid_at is None) == ("paid", False)
        assert mark_paid(connection, invoice_id, amount_minor, currency) is Marked.ALREADY_PAID
    else:
        assert after == before


def test_two_payments_at_once_mark_it_once(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        invoice_id = invoice(making, user(making), "2026-11-20")
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        assert mark_paid(one, invoice_id, 123450, "EUR") is Marked.PAID
        waiting = fetch_one(
            other, "SELECT id FROM example.invoices WHERE id = %(id)s FOR UPDATE SKIP LOCKED", {"id": invoice_id}
        )
        assert waiting is None, "the second one must wait for the first"
        one.commit()
        assert mark_paid(other, invoice_id, 123450, "EUR") is Marked.ALREADY_PAID
