"""Figures for documents, and readers of the documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser

import pypdfium2

from rowcall_example.queries import (
    CurrencySales,
    CustomerSales,
    DayFigures,
    DaySales,
    HourSales,
    Invoice,
    Sales,
    User,
    Week,
    WeeklyFigures,
)

MONDAY = date(2026, 11, 9)
DAY = date(2026, 11, 20)
OFFICE = User(3, "office-3@northwind.example.com", "Northwind Office 3", "Europe/Berlin")


def week(*days: DayFigures | Sequence[Sales], first: date = MONDAY) -> Week:
    """Return a week that starts with these days (or their sales); nothing happened on the other days."""
    told = [day if isinstance(day, DayFigures) else DayFigures(first, tuple(day)) for day in days]
    told += [DayFigures(first)] * (7 - len(told))
    return Week(
        tuple(
            DayFigures(first + timedelta(days=number), day.sales, day.sessions, day.minutes)
            for number, day in enumerate(told)
        )
    )


def weekly(now: Week | None = None, before: Week | None = None, user: User = OFFICE) -> WeeklyFigures:
    """Return an ordinary week, unless given another: 5 orders after 4, and 90 minutes after 120."""
    now = now or week(
        DayFigures(MONDAY, (Sales("EUR", 3, 123450),), 2, 90),
        [],
        [Sales("EUR", 2, 6550)],
    )
    before = before or week(DayFigures(MONDAY, (Sales("EUR", 4, 100000),), 1, 120), first=MONDAY - timedelta(days=7))
    return WeeklyFigures(user, now, before)


def named(name: str) -> User:
    """Return a user with this name."""
    return User(7, "seven@example.com", name, "UTC")


def invoice(number: str = "INV-2026-0031", user: User = OFFICE) -> Invoice:
    """Return an open invoice over 1,234.50 EUR."""
    created_at = datetime(2026, 11, 1, 12, tzinfo=UTC)
    return Invoice(1, number, 123450, "EUR", "open", date(2026, 11, 23), None, created_at, user)


def customer(number: int, name: str = "", amount_minor: int = 1000, currency: str = "EUR") -> CustomerSales:
    """Return a customer with one order."""
    return CustomerSales(
        number, name or f"Northwind Office {number}", f"office-{number}@example.com", currency, 1, amount_minor
    )


def day_sales(*best: CustomerSales, customers: int = 0) -> DaySales:
    """Return a day with these customers, who all ordered at nine, by currency."""
    parts = []
    for currency in sorted({each.currency for each in best}):
        mine = tuple(each for each in best if each.currency == currency)
        hour = HourSales(9, currency, len(mine), sum(each.amount_minor for each in mine))
        parts.append(CurrencySales(currency, (hour,), mine, customers or len(mine)))
    return DaySales(DAY, tuple(parts))


def pages(pdf: bytes) -> list[str]:
    """Return the text of each page, as a viewer would copy it."""
    with pypdfium2.PdfDocument(pdf) as document:
        return [page.get_textpage().get_text_bounded().replace("\r\n", "\n") for page in document]


class Page(HTMLParser):
    """Parses HTML, asserts that every element is closed in its place, and collects text and elements."""

    VOID = ("meta", "img", "br")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Assert that it is the last one opened."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect what a reader sees, with single spaces."""
        if "style" not in self._open:
            self.text = " ".join(f"{self.text} {data}".split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of every such element."""
        return [attributes for name, attributes in self.elements if name == tag]
