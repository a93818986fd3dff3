"""Invoices: which need a reminder on a day, which user they belong to, and how they become paid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from rowcall_example.errors import InvoiceNotFound
from rowcall_example.queries.users import User
from rowcall_example.sql import Connection, fetch_all, fetch_one


class ReminderKind(StrEnum):
    """The kinds of reminders."""

    UPCOMING = "upcoming"
    DUE = "due"
    OVERDUE = "overdue"


# How many days after an invoice's due_on each reminder is sent.
REMINDER_DAYS = {ReminderKind.UPCOMING: -3, ReminderKind.DUE: 0, ReminderKind.OVERDUE: 7}

# One lookup in invoices_due for each kind.  An invoice has one due_on, so it appears at most once, and its id can serve
# as the position of a page.  Materialized, because with the ORDER BY the planner would scan all invoices by id.
DUE_INVOICES = f"""
WITH reminder (kind, days) AS (
    VALUES {", ".join(f"('{kind}', {days})" for kind, days in REMINDER_DAYS.items())}
), due AS MATERIALIZED (
    SELECT invoices.id, reminder.kind FROM reminder
    JOIN example.invoices ON invoices.due_on = %(day)s::date - reminder.days AND invoices.status = 'open'
)
SELECT id AS invoice_id, kind FROM due WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s
"""

# Uses the primary keys.
GET_INVOICE = """
SELECT invoices.id, number, amount_minor, currency, status, due_on, paid_at, invoices.created_at,
    user_id, email, name, time_zone
FROM example.invoices JOIN example.users ON users.id = invoices.user_id
WHERE invoices.id = %(invoice_id)s
"""

MARK_PAID = """
UPDATE example.invoices SET status = 'paid', paid_at = now()
WHERE id = %(invoice_id)s AND status = 'open' AND amount_minor = %(amount_minor)s AND currency = %(currency)s
RETURNING id
"""


@dataclass(frozen=True)
class Reminder:
    """An invoice that needs a reminder, and the reminder's kind."""

    invoice_id: int
    kind: ReminderKind


@dataclass(frozen=True)
class Invoice:
    """An invoice and its user."""

    id: int
    number: str
    amount_minor: int
    currency: str
    status: str
    due_on: date
    paid_at: datetime | None
    created_at: datetime
    user: User


class Marked(StrEnum):
    """The result of marking an invoice as paid."""

    PAID = "paid"
    ALREADY_PAID = "already paid"
    VOID = "void"
    OTHER_AMOUNT = "other amount"


def due_invoices(connection: Connection, day: date, after_id: int, limit: int) -> list[Reminder]:
    """Return a page of open invoices with a reminder on this day (UTC), by id, after after_id."""
    rows = fetch_all(connection, DUE_INVOICES, {"day": day, "after_id": after_id, "limit": limit})
    return [Reminder(row["invoice_id"], ReminderKind(row["kind"])) for row in rows]


def invoice_with_user(connection: Connection, invoice_id: int) -> Invoice:
    """Return the invoice and its user, or raise InvoiceNotFound."""
    row = fetch_one(connection, GET_INVOICE, {"invoice_id": invoice_id})
    if row is None:
        raise InvoiceNotFound(invoice_id)
    user = User(row.pop("user_id"), row.pop("email"), row.pop("name"), row.pop("time_zone"))
    return Invoice(user=user, **row)


def mark_paid(connection: Connection, invoice_id: int, amount_minor: int, currency: str) -> Marked:
    """Mark the invoice as paid if it is open and has this amount; otherwise change nothing and return the reason."""
    paid = fetch_one(
        connection, MARK_PAID, {"invoice_id": invoice_id, "amount_minor": amount_minor, "currency": currency}
    )
    if paid:
        return Marked.PAID
    status = invoice_with_user(connection, invoice_id).status
    return {"paid": Marked.ALREADY_PAID, "void": Marked.VOID, "open": Marked.OTHER_AMOUNT}[status]
