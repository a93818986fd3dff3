"""Money: exact at any size, with the decimal places that ISO 4217 defines for the currency."""

from __future__ import annotations

import pytest

from rowcall_example.money import decimal_text, money_text


@pytest.mark.parametrize(
    ("amount_minor", "currency", "for_people", "for_programs"),
    [
        (123450, "EUR", "1,234.50 EUR", "1234.50"),
        (5, "EUR", "0.05 EUR", "0.05"),
        (0, "USD", "0.00 USD", "0.00"),
        (1234567, "JPY", "1,234,567 JPY", "1234567"),
        (1234567, "KWD", "1,234.567 KWD", "1234.567"),
        (12, "CLF", "0.0012 CLF", "0.0012"),
        (-123456, "EUR", "-1,234.56 EUR", "-1234.56"),
        (-5, "EUR", "-0.05 EUR", "-0.05"),
        (100, "XYZ", "1.00 XYZ", "1.00"),
        (9223372036854775807, "EUR", "92,233,720,368,547,758.07 EUR", "92233720368547758.07"),
    ],
)
def test_an_amount_is_written_with_its_currencys_decimal_places(
    amount_minor: int, currency: str, for_people: str, for_programs: str
) -> None:
    assert money_text(amount_minor, currency) == for_people
    assert decimal_text(amount_minor, currency) == for_programs
