"""A day's sales (UTC), by hour and by customer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from rowcall_example.days import utc_day
from rowcall_example.sql import Connection, Row, fetch_all

# How many customers are named; the others are only counted.
NAMED_CUSTOMERS = 500

# Both statements read only the day's range of the index orders_day.
HOURS = """
SELECT extract(hour FROM ordered_at AT TIME ZONE 'UTC')::integer AS hour, currency,
    count(*) AS orders, sum(amount_minor) AS amount_minor
FROM example.orders WHERE ordered_at >= %(start)s AND ordered_at < %(end)s
GROUP BY 1, 2
ORDER BY 1, 2
"""

CUSTOMERS = """
WITH bought AS (
    SELECT user_id, currency, count(*) AS orders, sum(amount_minor) AS amount_minor
    FROM example.orders WHERE ordered_at >= %(start)s AND ordered_at < %(end)s
    GROUP BY user_id, currency
), ranked AS (
    SELECT bought.*, count(*) OVER (PARTITION BY currency) AS customers,
        row_number() OVER (PARTITION BY currency ORDER BY amount_minor DESC, user_id) AS place
    FROM bought
)
SELECT user_id, users.name, users.email, currency, orders, amount_minor, customers
FROM ranked JOIN example.users ON users.id = ranked.user_id
WHERE place <= %(most)s
ORDER BY currency, place
"""


@dataclass(frozen=True)
class HourSales:
    """The orders of one hour of the day, in one currency."""

    hour: int
    currency: str
    orders: int
    amount_minor: int


@dataclass(frozen=True)
class CustomerSales:
    """The orders of one customer on the day, in one currency."""

    user_id: int
    name: str
    email: str
    currency: str
    orders: int
    amount_minor: int


@dataclass(frozen=True)
class CurrencySales:
    """The whole day in one currency: the best customers first, and the number of all customers."""

    currency: str
    hours: tuple[HourSales, ...]
    best: tuple[CustomerSales, ...]
    customers: int

    @property
    def orders(self) -> int:
        """Return the number of orders."""
        return sum(hour.orders for hour in self.hours)

    @property
    def amount_minor(self) -> int:
        """Return the total amount of the orders."""
        return sum(hour.amount_minor for hour in self.hours)


@dataclass(frozen=True)
class DaySales:
    """A day's sales, one part for each currency with orders."""

    day: date
    currencies: tuple[CurrencySales, ...]

    @property
    def orders(self) -> int:
        """Return the number of orders in all currencies."""
        return sum(sales.orders for sales in self.currencies)


def sales_of_day(connection: Connection, day: date) -> DaySales:
    """Return the sales of this day (UTC)."""
    start, end = utc_day(day)
    values = {"start": start, "end": end, "most": NAMED_CUSTOMERS}
    hours = [_as_whole_numbers(row) for row in fetch_all(connection, HOURS, values)]
    customers = [_as_whole_numbers(row) for row in fetch_all(connection, CUSTOMERS, values)]
    return DaySales(day, tuple(_of_currency(currency, hours, customers) for currency in _currencies(hours)))


def _of_currency(currency: str, hours: Iterable[Row], customers: Iterable[Row]) -> CurrencySales:
    mine = [row for row in customers if row["currency"] == currency]
    return CurrencySales(
        currency,
        hours=tuple(HourSales(**row) for row in hours if row["currency"] == currency),
        best=tuple(CustomerSales(**{name: row[name] for name in row if name != "customers"}) for row in mine),
        customers=mine[0]["customers"],
    )


def _currencies(hours: Iterable[Row]) -> list[str]:
    return sorted({row["currency"] for row in hours})


def _as_whole_numbers(row: Row) -> Row:
    """Convert sums to int: PostgreSQL adds bigints up as numeric, so that no sum can overflow."""
    return {**row, "amount_minor": int(row["amount_minor"])}
