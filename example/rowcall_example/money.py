"""Amounts of money: whole numbers of a currency's minor unit in code, decimal text for people and files."""

from __future__ import annotations

# ISO 4217 gives all currencies two decimal places, except these.
TWO_DECIMALS = 2
OTHER_DECIMALS = {
    **dict.fromkeys(
        ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF"), 0
    ),
    **dict.fromkeys(("XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}


def decimals_of(currency: str) -> int:
    """Return the decimal places of this currency; an unknown one has two, as nearly all do."""
    return OTHER_DECIMALS.get(currency, TWO_DECIMALS)


def decimal_text(amount_minor: int, currency: str) -> str:
    """Return the bare amount for programs: 1234.50."""
    return _decimal(amount_minor, currency, thousands="")


def money_text(amount_minor: int, currency: str) -> str:
    """Return the amount for people: 1,234.50 EUR."""
    return f"{_decimal(amount_minor, currency, thousands=',')} {currency}"


def _decimal(amount_minor: int, currency: str, thousands: str) -> str:
    """Format with integer arithmetic, because a float would round large sums."""
    decimals = decimals_of(currency)
    whole, rest = divmod(abs(amount_minor), 10**decimals)
    sign = "-" if amount_minor < 0 else ""
    fraction = f".{rest:0{decimals}d}" if decimals else ""
    return f"{sign}{whole:{thousands}d}{fraction}"
