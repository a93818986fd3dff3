"""A user's week and the week before, day by day in the user's own time zone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import psycopg2.errors

from rowcall_example.days import utc_day
from rowcall_example.errors import TimeZoneUnknown
from rowcall_example.queries.users import User, get_user
from rowcall_example.sql import Connection, fetch_all

# In both statements, the index (orders_user, sessions_user) finds the user's rows from a day before to a day after the
# requested days, which is enough for every zone; then the user's calendar decides.  So a day has 23 or 25 hours when
# the clock changes, and its midnight need not exist.
ORDERS = """
SELECT (ordered_at AT TIME ZONE %(zone)s)::date AS day, currency, count(*) AS orders, sum(amount_minor) AS amount_minor
FROM example.orders
WHERE user_id = %(user_id)s AND ordered_at >= %(earliest)s AND ordered_at < %(latest)s
    AND (ordered_at AT TIME ZONE %(zone)s)::date BETWEEN %(first)s AND %(last)s
GROUP BY 1, 2
ORDER BY 1, 2
"""

# A session belongs to the day on which it began, and counts until it expired or that day ended, so that the figures of
# a past day never change.
SESSIONS = """
WITH begun AS (
    SELECT started_at, expires_at, (started_at AT TIME ZONE %(zone)s)::date AS day FROM example.sessions
    WHERE user_id = %(user_id)s AND started_at >= %(earliest)s AND started_at < %(latest)s
), ended AS (
    SELECT day, greatest(least(expires_at, (day + 1)::timestamp AT TIME ZONE %(zone)s) - started_at, '0') AS lasted
    FROM begun WHERE day BETWEEN %(first)s AND %(last)s
)
SELECT day, count(*) AS sessions, floor(extract(epoch FROM sum(lasted)) / 60)::bigint AS minutes FROM ended
GROUP BY 1
ORDER BY 1
"""


@dataclass(frozen=True)
class Sales:
    """Orders in one currency, and their total amount."""

    currency: str
    orders: int
    amount_minor: int


@dataclass(frozen=True)
class DayFigures:
    """One day: sales by currency, the number of sessions that began, and their minutes."""

    day: date
    sales: tuple[Sales, ...] = ()
    sessions: int = 0
    minutes: int = 0

    @property
    def orders(self) -> int:
        """Return the number of orders in all currencies."""
        return sum(sales.orders for sales in self.sales)


@dataclass(frozen=True)
class Week:
    """All days of a week, including those on which nothing happened."""

    days: tuple[DayFigures, ...]

    @property
    def orders(self) -> int:
        """Return the number of orders in all currencies."""
        return sum(day.orders for day in self.days)

    @property
    def sessions(self) -> int:
        """Return the number of sessions that began in this week."""
        return sum(day.sessions for day in self.days)

    @property
    def minutes(self) -> int:
        """Return the total minutes of these sessions."""
        return sum(day.minutes for day in self.days)

    @property
    def sales(self) -> tuple[Sales, ...]:
        """Return the week's sales by currency."""
        orders: dict[str, int] = defaultdict(int)
        amounts: dict[str, int] = defaultdict(int)
        for day in self.days:
            for sales in day.sales:
                orders[sales.currency] += sales.orders
                amounts[sales.currency] += sales.amount_minor
        return tuple(Sales(currency, orders[currency], amounts[currency]) for currency in sorted(orders))

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.orders or self.sessions)


@dataclass(frozen=True)
class WeeklyFigures:
    """The figures of a weekly report: the user, the week, and the same number of days before it."""

    user: User
    week: Week
    before: Week

    @property
    def first(self) -> date:
        """Return the week's first day."""
        return self.week.days[0].day

    @property
    def last(self) -> date:
        """Return the week's last day."""
        return self.week.days[-1].day


def weekly_figures(connection: Connection, user_id: int, first: date, last: date) -> WeeklyFigures:
    """Return the days from first to last (included) in the user's zone, and the same number of days before them."""
    user = get_user(connection, user_id)
    _check_zone(connection, user)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    earlier = [day - timedelta(days=len(days)) for day in days]
    values = {"user_id": user_id, "zone": user.time_zone, **bounds(min(earlier), last)}
    sales: dict[date, list[Sales]] = defaultdict(list)
    for row in fetch_all(connection, ORDERS, values):
        sales[row["day"]].append(Sales(row["currency"], row["orders"], int(row["amount_minor"])))
    times = {row["day"]: (row["sessions"], row["minutes"]) for row in fetch_all(connection, SESSIONS, values)}

    def week(of: Iterable[date]) -> Week:
        return Week(tuple(DayFigures(day, tuple(sales[day]), *times.get(day, (0, 0))) for day in of))

    return WeeklyFigures(user, week(days), week(earlier))


def bounds(first: date, last: date) -> dict[str, date | datetime]:
    """Return the days, and times that are outside them in every zone."""
    day = timedelta(days=1)
    return {"first": first, "last": last, "earliest": utc_day(first - day)[0], "latest": utc_day(last + day)[1]}


def _check_zone(connection: Connection, user: User) -> None:
    """Refuse a zone that PostgreSQL does not know, even if no row needs it."""
    try:
        fetch_all(connection, "SELECT now() AT TIME ZONE %(zone)s", {"zone": user.time_zone})
    except psycopg2.errors.InvalidParameterValue:
        raise TimeZoneUnknown(user.id, user.time_zone) from None
