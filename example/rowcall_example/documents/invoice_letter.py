"""A reminder of an invoice, in the tone of its kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from rowcall_example.documents.colours import ACCENT, ALARM, NOTICE
from rowcall_example.documents.letter import Letter
from rowcall_example.documents.rendering import rendered
from rowcall_example.documents.wording import day_text, one_line
from rowcall_example.money import money_text
from rowcall_example.queries import Invoice, ReminderKind


@dataclass(frozen=True)
class Tone:
    """The wording of a reminder; {number}, {amount} and {day} are filled in."""

    subject: str
    heading: str
    message: str
    colour: str


TONES = {
    ReminderKind.UPCOMING: Tone(
        "Invoice {number} will be due on {day}",
        "An invoice will be due soon",
        "This is a friendly reminder: invoice {number} for {amount} will be due on {day}.",
        ACCENT,
    ),
    ReminderKind.DUE: Tone(
        "Invoice {number} is due: {amount} by {day}",
        "Your invoice is due",
        "Invoice {number} for {amount} is due on {day}. Please pay it by then.",
        NOTICE,
    ),
    ReminderKind.OVERDUE: Tone(
        "Invoice {number} is overdue: it was due on {day}",
        "Your invoice is overdue",
        "Invoice {number} for {amount} was due on {day}, and we have not received the payment."
        " Please pay it as soon as you can.",
        ALARM,
    ),
}


def compose(invoice: Invoice, kind: ReminderKind) -> Letter:
    """Return the letter."""
    tone, number = TONES[kind], one_line(invoice.number)
    values = {
        "number": number,
        "amount": money_text(invoice.amount_minor, invoice.currency),
        "day": day_text(invoice.due_on),
    }
    text, html = rendered(
        "invoice",
        user=invoice.user,
        heading=tone.heading,
        message=tone.message.format(**values),
        colour=tone.colour,
        facts={
            "Invoice": number,
            "Amount": values["amount"],
            "Issued": day_text(invoice.created_at.astimezone(UTC).date()),
            "Due": f"{invoice.due_on:%A}, {values['day']}",
        },
        **values,
    )
    return Letter(tone.subject.format(**values), text, html)
