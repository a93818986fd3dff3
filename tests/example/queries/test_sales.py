"""A day's sales: the day in UTC, by hour and by customer, separate for each currency."""

from __future__ import annotations

from datetime import date

import pytest

from rowcall.base.database import PgConnection
from rowcall_example.queries import CustomerSales, HourSales, sales, sales_of_day
from tests.example.queries.rows import order, user

DAY = date(2026, 11, 20)


def test_a_day_without_orders_has_no_currencies(connection: PgConnection) -> None:
    told = sales_of_day(connection, DAY)
    assert (told.day, told.currencies, told.orders) == (DAY, (), 0)


def test_hours_and_totals_are_of_one_currency_each(connection: PgConnection) -> None:
    user_id = user(connection, "Asia/Tokyo")
    for moment, amount, currency in (
        ("2026-11-19 23:59:59", 1, "EUR"),
        ("2026-11-20 00:00", 100, "EUR"),
        ("2026-11-20 00:59", 200, "EUR"),
        ("2026-11-20 23:59:59", 300, "EUR"),
        ("2026-11-20 12:00", 5000, "KWD"),
        ("2026-11-21 00:00", 1, "EUR"),
    ):
        order(connection, user_id, moment, amount, currency)
    euro, dinar = sales_of_day(connection, DAY).currencies
    assert euro.hours == (HourSales(0, "EUR", 2, 300), HourSales(23, "EUR", 1, 300))
    assert (euro.currency, euro.orders, euro.amount_minor, euro.customers) == ("EUR", 3, 600, 1)
    assert (dinar.currency, dinar.orders, dinar.amount_minor, dinar.customers) == ("KWD", 1, 5000, 1)


def test_customers_stand_in_the_order_of_what_they_spent(connection: PgConnection) -> None:
    small, large, equal = (user(connection, name=name, email=f"{name}@example.com") for name in ("s", "l", "e"))
    for user_id, amount in ((small, 100), (large, 200), (large, 300), (equal, 100)):
        order(connection, user_id, "2026-11-20 10:00", amount)
    [euro] = sales_of_day(connection, DAY).currencies
    assert euro.best == (
        CustomerSales(large, "l", "l@example.com", "EUR", 2, 500),
        CustomerSales(small, "s", "s@example.com", "EUR", 1, 100),
        CustomerSales(equal, "e", "e@example.com", "EUR", 1, 100),
    )


def test_more_customers_than_can_be_named_are_still_counted(
    connection: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sales, "NAMED_CUSTOMERS", 2)
    for amount in (100, 300, 200):
        order(connection, user(connection), "2026-11-20 10:00", amount)
    [euro] = sales_of_day(connection, DAY).currencies
    assert ([customer.amount_minor for customer in euro.best], euro.customers, euro.orders) == ([300, 200], 3, 3)
