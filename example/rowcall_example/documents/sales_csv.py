"""A day's sales as CSV (RFC 4180), for spreadsheets and programs.

It is one table; the first column says what a row is: the total of a currency, an hour, or a customer.  It is UTF-8 with
a byte order mark: without that, Excel would read it in the machine's old code page.  Programs skip the mark with the
encoding utf-8-sig.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator

from rowcall_example.money import decimal_text
from rowcall_example.queries import CurrencySales, DaySales

COLUMNS = ("row", "date", "currency", "hour_utc", "customer_id", "customer", "email", "orders", "amount")

# A spreadsheet treats a cell that starts with one of these characters as a formula, and evaluates it; the last four
# are the wide forms of the first four.  It may skip blanks, visible or not, and it may start a cell after a semicolon,
# a tab or the end of a line: how it splits a file depends on its language.
BLANKS = r"(?:[^\S\t\r\n]|[\u200b-\u200f\u2060\ufeff])*+"
FORMULA = re.compile(rf"^(?={BLANKS}[\t\r\n])|(?:^|[;\t\r\n])(?={BLANKS}[=+\-@\uff1d\uff0b\uff0d\uff20])")


def compose(sales: DaySales) -> bytes:
    """Return the file."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for part in sales.currencies:
        writer.writerows((row, sales.day, part.currency, *cells) for row, *cells in _rows(part))
    return codecs.BOM_UTF8 + written.getvalue().encode()


def _rows(part: CurrencySales) -> Iterator[tuple[object, ...]]:
    yield "total", "", "", "", "", part.orders, decimal_text(part.amount_minor, part.currency)
    for hour in part.hours:
        yield "hour", hour.hour, "", "", "", hour.orders, decimal_text(hour.amount_minor, part.currency)
    for customer in part.best:
        yield (
            "customer",
            "",
            customer.user_id,
            harmless(customer.name),
            harmless(customer.email),
            customer.orders,
            decimal_text(customer.amount_minor, part.currency),
        )


def harmless(text: str) -> str:
    """Return text with a quote in front of what a spreadsheet would treat as a formula."""
    return FORMULA.sub(r"\g<0>'", text)
