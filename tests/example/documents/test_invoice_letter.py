"""Invoice reminders: three kinds with different tones and the same facts."""

from __future__ import annotations

import pytest

from rowcall_example.documents import write_invoice_letter
from rowcall_example.queries import ReminderKind
from tests.example.documents.figures import Page, invoice, named


@pytest.mark.parametrize(
    ("kind", "subject", "message"),
    [
        (
            ReminderKind.UPCOMING,
            "Invoice INV-2026-0031 will be due on 23 November 2026",
            "invoice INV-2026-0031 for 1,234.50 EUR will be due on 23 November 2026.",
        ),
        (
            ReminderKind.DUE,
            "Invoice INV-2026-0031 is due: 1,234.50 EUR by 23 November 2026",
            "Invoice INV-2026-0031 for 1,234.50 EUR is due on 23 November 2026.",
        ),
        (
            ReminderKind.OVERDUE,
            "Invoice INV-2026-0031 is overdue: it was due on 23 November 2026",
            "Invoice INV-2026-0031 for 1,234.50 EUR was due on 23 November 2026, and we have not received the",
        ),
    ],
)
def test_each_kind_says_when_it_is_due_by_date_and_never_by_today(
    kind: ReminderKind, subject: str, message: str
) -> None:
    letter = write_invoice_letter(invoice(), kind)
    assert letter.subject == subject
    for told in (" ".join(letter.text.split()), Page(letter.html).text):
        for fact in (message, "1,234.50 EUR", "1 November 2026", "Monday, 23 November 2026", "Northwind Office 3"):
            assert fact in told
        assert "today" not in told


def test_every_kind_has_its_letter_and_no_two_look_alike() -> None:
    assert len({write_invoice_letter(invoice(), kind).html for kind in ReminderKind}) == len(ReminderKind)


def test_what_came_from_outside_is_text_and_stays_on_its_line() -> None:
    letter = write_invoice_letter(invoice("N\r\nBcc: x <i>", named("<b>&")), ReminderKind.DUE)
    assert letter.subject.startswith("Invoice N Bcc: x <i> is due")
    assert not Page(letter.html).all("b") + Page(letter.html).all("i")
    assert "Hello <b>& ," in Page(letter.html).text


def test_braces_in_a_number_are_left_alone() -> None:
    assert "Invoice {day} is due" in write_invoice_letter(invoice("{day}"), ReminderKind.DUE).subject
