"""What documents look like: figures in, text and bytes out, with no SQL and no socket.

The same figures give the same bytes, in any thread: nothing here looks at a clock, and nothing is shared but templates.
What draws and sets type is loaded by the first document, not by the worker's start.
"""

from __future__ import annotations

from rowcall_example.documents.letter import Letter, Part
from rowcall_example.queries import DaySales, Invoice, ReminderKind, WeeklyFigures

__all__ = ["Letter", "Part", "write_invoice_letter", "write_sales_csv", "write_sales_pdf", "write_weekly_letter"]


def write_weekly_letter(figures: WeeklyFigures) -> Letter:
    """A user's week beside the week before: tables, a chart in the HTML, and the same as a PDF."""
    from rowcall_example.documents import weekly_letter

    return weekly_letter.compose(figures)


def write_invoice_letter(invoice: Invoice, kind: ReminderKind) -> Letter:
    """A reminder of an invoice.  It names dates, never `today`: nobody knows when it is read, or sent again."""
    from rowcall_example.documents import invoice_letter

    return invoice_letter.compose(invoice, kind)


def write_sales_csv(sales: DaySales) -> bytes:
    """A day's sales as a table for spreadsheets and programs."""
    from rowcall_example.documents import sales_csv

    return sales_csv.compose(sales)


def write_sales_pdf(sales: DaySales) -> bytes:
    """A day's sales as pages for people."""
    from rowcall_example.documents import sales_pdf

    return sales_pdf.compose(sales)
