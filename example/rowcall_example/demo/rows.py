"""The demo's users and what they did, as plain rows, which are always the same for a user and a day.

Randomness depends only on the user's number and the day.  Times have no zone, because they are in the user's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from rowcall_example.money import decimals_of
from rowcall_example.sql import Row

DAYS = 21

# A domain reserved for examples: no email is ever delivered to it, and no real user has it.
DOMAIN = "example.com"


@dataclass(frozen=True)
class Company:
    """A demo user's name, time zone and currencies; most orders are in the first currency."""

    name: str
    time_zone: str
    currencies: tuple[str, ...]


COMPANIES = (
    Company("Northwind Office", "Europe/Berlin", ("EUR",)),
    Company("Harbour Bakery", "Europe/London", ("GBP", "EUR")),
    Company("Old Mill Bookshop", "America/New_York", ("USD",)),
    Company("東京文具店", "Asia/Tokyo", ("JPY", "USD")),
    Company("Café Überraschung", "Europe/Vienna", ("EUR",)),
    Company("Łódź Print Works", "Europe/Warsaw", ("EUR", "USD")),
    Company("Oasis Date Traders", "Asia/Kuwait", ("KWD", "USD")),
    Company("High Pass Tea House", "Asia/Kathmandu", ("USD",)),
    Company("Southern Bicycles", "Australia/Sydney", ("USD",)),
    Company("Padaria Central", "America/Sao_Paulo", ("USD", "EUR")),
    Company("Dağ Ceramics", "Europe/Istanbul", ("EUR", "USD")),
    Company("Lakeside Front Desk", "Africa/Nairobi", ("USD",)),
    Company("Island Ferry Desk", "Pacific/Auckland", ("USD",)),
    Company("Prairie Seed Store", "America/Chicago", ("USD",)),
    Company("Mountain Hut Supplies", "Europe/Zurich", ("CHF", "EUR")),
    Company("Dockside Crane Rentals", "Asia/Singapore", ("USD", "JPY")),
    Company("Green Line Couriers", "Asia/Kolkata", ("USD", "GBP")),
    Company("Blue Door Studio", "Europe/Lisbon", ("EUR",)),
    Company("Night Shift Radio", "UTC", ("USD",)),
    Company("Corner Lamp Repairs", "America/Vancouver", ("USD",)),
)

# How many units are worth about a euro, for currencies in which that is far from one.
WORTH = {"JPY": 160}

# Monday to Sunday: business relative to an ordinary working day.
WEEKDAYS = (1.0, 1.0, 1.1, 1.0, 1.2, 0.6, 0.3)

# The last company did nothing in the last whole week, so that one report is about a quiet week.
QUIET_EVERY = len(COMPANIES)

# Days from today to an invoice's due_on, and its status; each user has the first two and two of the others.
PAID = ((-25, "paid"), (-11, "paid"))
OTHERS = ((3, "open"), (0, "open"), (-7, "open"), (14, "open"), (-30, "void"))

# A cache entry's name, and days from today to its expiry.
CACHED = (
    ("dashboard:open_invoices", 1),
    ("dashboard:sales_today", -1),
    ("page:home", -3),
    ("page:prices", -10),
    ("page:contact", 30),
)


def chance_of(number: int, today: date) -> random.Random:
    """Return the random number generator for this user's rows; the order in which rows are made must not change."""
    return random.Random(f"{today} {number}")  # noqa: S311  # it protects no secrets, and it must be repeatable


def email_of(number: int) -> str:
    """Return the address that identifies a demo user."""
    return f"customer-{number:02}@{DOMAIN}"


def _company(number: int) -> Company:
    return COMPANIES[(number - 1) % len(COMPANIES)]


def user(number: int, _today: date, _chance: random.Random) -> Iterator[Row]:
    """Yield the user."""
    company, office = _company(number), 1 + (number - 1) // len(COMPANIES)
    name = company.name if office == 1 else f"{company.name}, Office {office}"
    yield {"email": email_of(number), "name": name, "time_zone": company.time_zone}


def orders(number: int, today: date, chance: random.Random) -> Iterator[Row]:
    """Yield some orders for each day, their number depending on the weekday, most of them in the early afternoon."""
    usual = 1 + chance.random() * 4
    for day in _busy_days(number, today):
        for _ in range(round(usual * WEEKDAYS[day.weekday()] * (0.4 + chance.random() * 1.2))):
            company = _company(number)
            currency = company.currencies[0 if chance.random() < 0.8 else -1]
            yield {
                "email": email_of(number),
                "amount_minor": _amount(currency, 4, 180, chance),
                "currency": currency,
                "at": _working_hour(day, chance),
            }


def sessions(number: int, today: date, chance: random.Random) -> Iterator[Row]:
    """Yield one or two finished sessions on most days; every other user also has one that lasts beyond today."""
    for day in _busy_days(number, today):
        for _ in range(round(chance.random() * 2 * WEEKDAYS[day.weekday()])):
            minutes = 3 + int(chance.random() ** 2 * 110)
            yield {"email": email_of(number), "at": _working_hour(day, chance), "minutes": minutes}
    if number % 2:
        day = today - timedelta(days=2)
        yield {"email": email_of(number), "at": _working_hour(day, chance), "minutes": 5 * 24 * 60}


def invoices(number: int, today: date, chance: random.Random) -> Iterator[Row]:
    """Yield two paid invoices, and two of the other kinds in turn."""
    others = (OTHERS[number % len(OTHERS)], OTHERS[(number + 2) % len(OTHERS)])
    for place, (days, status) in enumerate((*PAID, *others), start=1):
        currency = _company(number).currencies[0]
        yield {
            "email": email_of(number),
            "number": f"DEMO-{number:03}-{place}",
            "amount_minor": _amount(currency, 40, 1900, chance),
            "currency": currency,
            "status": status,
            "due_on": str(today + timedelta(days=days)),
        }


def _busy_days(number: int, today: date) -> list[date]:
    last_whole_week = today - timedelta(days=today.weekday() + 7)
    end = last_whole_week if number % QUIET_EVERY == 0 else today
    return [day for days in range(DAYS, 0, -1) if (day := today - timedelta(days=days)) < end]


def _working_hour(day: date, chance: random.Random) -> str:
    """Return a time between 7:00 and 21:00, most likely in the middle, in the user's zone."""
    seconds = 7 * 3600 + int((chance.random() + chance.random()) / 2 * 14 * 3600)
    return (datetime.combine(day, time()) + timedelta(seconds=seconds)).isoformat()


def _amount(currency: str, least: int, most: int, chance: random.Random) -> int:
    """Return an amount worth `least` to `most` euros, more often a small one, in half or whole units."""
    units = least + chance.random() ** 2 * (most - least)
    halves = round(units * WORTH.get(currency, 1) * 2)
    amount_minor: int = halves * 10 ** decimals_of(currency) // 2
    return amount_minor
