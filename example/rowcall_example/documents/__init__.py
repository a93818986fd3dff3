"""Documents: figures in, text and bytes out, without SQL or network access.

The same figures give the same bytes, in any thread: nothing here reads a clock, and only templates are shared.  The
libraries for drawing and typesetting are imported with the first document, not when the worker starts.
"""

from __future__ import annotations

from rowcall_example.documents.letter import Letter, Part
from rowcall_example.queries import DaySales, Invoice, ReminderKind, WeeklyFigures

__all__ = ["Letter", "Part", "write_invoice_letter", "write_sales_csv", "write_sales_pdf", "write_weekly_letter"]


def write_weekly_letter(figures: WeeklyFigures) -> Letter:
    """Return a user's week compared with the week before: tables, a chart in the HTML, and a PDF of the same."""
    from rowcall_example.documents import weekly_letter

    return weekly_letter.compose(figures)


def write_invoice_letter(invoice: Invoice, kind: ReminderKind) -> Letter:
    """Return a reminder of an invoice.  It contains dates but never "today", because it may be read or sent later."""
    from rowcall_example.documents import invoice_letter

    return invoice_letter.compose(invoice, kind)


def write_sales_csv(sales: DaySales) -> bytes:
    """Return a day's sales as a table for spreadsheets and programs."""
    from rowcall_example.documents import sales_csv

    return sales_csv.compose(sales)


def write_sales_pdf(sales: DaySales) -> bytes:
    """Return a day's sales as pages for people."""
    from rowcall_example.documents import sales_pdf

    return sales_pdf.compose(sales)
