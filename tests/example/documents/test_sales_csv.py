"""The sales report as CSV, as spreadsheets and programs read it."""

from __future__ import annotations

import csv
import io

import pytest

from rowcall_example.documents import write_sales_csv
from rowcall_example.queries import DaySales
from tests.example.documents.figures import DAY, customer, day_sales


def read(content: bytes) -> list[dict[str, str]]:
    """Return the rows as a program reads them."""
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))


def test_every_row_tells_what_it_is_and_amounts_are_plain_decimals() -> None:
    rows = read(write_sales_csv(day_sales(customer(1, amount_minor=123450), customer(1, "", 5000, "JPY"))))
    assert [(row["row"], row["currency"], row["orders"], row["amount"]) for row in rows] == [
        ("total", "EUR", "1", "1234.50"),
        ("hour", "EUR", "1", "1234.50"),
        ("customer", "EUR", "1", "1234.50"),
        ("total", "JPY", "1", "5000"),
        ("hour", "JPY", "1", "5000"),
        ("customer", "JPY", "1", "5000"),
    ]
    assert {row["date"] for row in rows} == {"2026-11-20"}
    assert (rows[1]["hour_utc"], rows[2]["customer_id"], rows[2]["customer"], rows[2]["email"]) == (
        "9", "1", "Northwind Office 1", "office-1@example.com",
    )  # fmt: skip


def test_a_day_without_sales_has_only_the_headings() -> None:
    assert read(write_sales_csv(DaySales(DAY, ()))) == []


def test_it_is_utf_8_with_a_mark_that_excel_needs_and_ends_every_line_as_rfc_4180_asks() -> None:
    content = write_sales_csv(day_sales(customer(1, "Łukasz")))
    assert content.startswith(b"\xef\xbb\xbfrow,date,")
    assert content.endswith(b"\r\n")
    assert content.count(b"\n") == content.count(b"\r\n") == 4
    assert read(content)[2]["customer"] == "Łukasz"


@pytest.mark.parametrize("name", ['a "b", c', "two\r\nlines", "; | \t", "'quoted'", "山田"])
def test_any_name_is_read_back_as_it_was(name: str) -> None:
    assert read(write_sales_csv(day_sales(customer(1, name))))[2]["customer"] == name


@pytest.mark.parametrize(
    "name",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", '=HYPERLINK("x","y")', "\tAda", "\rAda", " \nAda"),
        *("  =1", "\xa0=1", "\u3000@x", "\u2003+1", "\u200b=1", "\ufeff=1", "\v=1", "\f=1", " \xa0 =1"),
    ],
)
def test_a_name_that_a_spreadsheet_would_carry_out_is_marked_as_text(name: str) -> None:
    assert read(write_sales_csv(day_sales(customer(1, name))))[2]["customer"] == f"'{name}"


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("Ada;=1+1", "Ada;'=1+1"),
        ("Ada; \xa0@x;y;-1", "Ada;' \xa0@x;y;'-1"),
        ("Ada\t=1", "Ada\t'=1"),
        ("Ada\r\n=1", "Ada\r\n'=1"),
        ("\t=1", "'\t'=1"),
        (";=1", ";'=1"),
    ],
)
def test_what_a_spreadsheet_that_splits_at_other_signs_would_carry_out_is_marked_too(name: str, marked: str) -> None:
    assert read(write_sales_csv(day_sales(customer(1, name))))[2]["customer"] == marked


@pytest.mark.parametrize("name", ["Ada - Grace", "a=b", "ada@example.com", "1; 2", "a;b-c"])
def test_a_sign_within_a_cell_is_left_as_it_is(name: str) -> None:
    assert read(write_sales_csv(day_sales(customer(1, name))))[2]["customer"] == name
