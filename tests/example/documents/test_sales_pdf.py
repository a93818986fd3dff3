"""The sales report as PDF."""

from __future__ import annotations

from dataclasses import replace

import pypdfium2
import pytest

from rowcall_example.documents import write_sales_pdf
from rowcall_example.queries import CustomerSales, DaySales, HourSales
from tests.example.documents.figures import DAY, customer, day_sales, pages


def test_it_tells_totals_hours_and_customers_of_each_currency() -> None:
    sales = day_sales(customer(1, amount_minor=123450), customer(2, amount_minor=50), customer(1, "", 7000, "JPY"))
    told = "\n".join(pages(write_sales_pdf(sales)))
    for line in (
        "Friday, 20 November 2026",
        "3 orders in 2 currencies.",
        "EUR 2 2 617.50 EUR 1,235.00 EUR",
        "JPY 1 1 7,000 JPY 7,000 JPY",
        "Orders by hour",
        "09:00 – 09:59 2 1,235.00 EUR\n1 7,000 JPY",
        "1 Northwind Office 1 office-1@example.com 1 1,234.50 EUR",
        "2 Northwind Office 2 office-2@example.com 1 0.50 EUR",
    ):
        assert line in told, told


def test_a_day_without_sales_says_so_on_one_page() -> None:
    [told] = pages(write_sales_pdf(DaySales(DAY, ())))
    assert "There were no orders on this day." in told


def test_five_hundred_customers_go_on_over_numbered_pages_under_repeated_headings() -> None:
    everyone = [customer(number, amount_minor=100_000 - number) for number in range(1, 501)]
    told = pages(write_sales_pdf(day_sales(*everyone, customers=1734)))
    assert len(told) > 10
    for number, page in enumerate(told, start=1):
        assert f"Page {number} of {len(told)}" in page
    assert all("# Customer Email Orders Amount" in page for page in told[1:-1])
    assert all(f"{number} Northwind Office {number} office-" in "\n".join(told) for number in range(1, 501))
    assert "1,234 more customers in EUR spent less than these." in told[-1]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Łódź & Söhne <GmbH>", "Łódź & Söhne <GmbH>"),
        ("東京文具店", "Customer 1"),
        ("A\nB", "A B"),
        ("W" * 200, "WWW…"),
    ],
)
def test_a_name_is_set_cut_or_replaced_but_never_a_row_of_boxes(name: str, shown: str) -> None:
    told = "\n".join(pages(write_sales_pdf(day_sales(customer(1, name)))))
    before, after = shown.partition("…")[::2] if "…" in shown else (shown, "")
    assert before + after in told
    assert "office-1@example.com" in told


def test_the_largest_amount_is_told_in_full() -> None:
    told = "\n".join(pages(write_sales_pdf(day_sales(customer(1, amount_minor=2**63 - 1)))))
    assert told.count("92,233,720,368,547,758.07 EUR") == 4


def test_orders_of_all_currencies_are_counted_up_by_hour() -> None:
    sales = day_sales(customer(1), customer(2, currency="USD"))
    late = replace(sales.currencies[0], hours=(HourSales(23, "EUR", 41, 100),))
    told = pages(write_sales_pdf(replace(sales, currencies=(late, sales.currencies[1]))))[0]
    chart = told[told.index("Orders by hour") :]
    assert "23" in chart
    assert "41" in chart


def test_it_is_dated_by_its_day() -> None:
    with pypdfium2.PdfDocument(write_sales_pdf(day_sales(customer(1)))) as document:
        told = document.get_metadata_dict()
    assert (told["Title"], told["CreationDate"]) == ("Sales report: Friday, 20 November 2026", "D:20261120000000Z")


def test_an_address_that_the_font_cannot_set_is_told_as_far_as_it_can_be() -> None:
    odd = CustomerSales(1, "X", "山@例え.jp", "EUR", 1, 100)
    assert "?@??.jp" in "\n".join(pages(write_sales_pdf(day_sales(odd))))
