"""Weekly figures: days in the user's zone, separate for each currency, with the week before."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from rowcall.base.database import PgConnection
from rowcall_example.errors import TimeZoneUnknown, UserNotFound
from rowcall_example.queries import Sales, weekly_figures
from tests.example.queries.rows import order, session, user

MONDAY = date(2026, 3, 23)
SUNDAY = date(2026, 3, 29)  # Berlin's clocks go forward at 02:00


def orders_by_day(connection: PgConnection, user_id: int, first: date = MONDAY) -> dict[str, int]:
    """Return weekday -> orders, for the days that have any."""
    figures = weekly_figures(connection, user_id, first, first + timedelta(days=6))
    return {f"{day.day:%a}": day.orders for day in figures.week.days if day.orders}


def test_the_week_has_every_day_and_so_has_the_week_before(connection: PgConnection) -> None:
    figures = weekly_figures(connection, user(connection), MONDAY, SUNDAY)
    assert [day.day for day in figures.week.days] == [MONDAY + timedelta(days=number) for number in range(7)]
    assert [day.day for day in figures.before.days] == [MONDAY - timedelta(days=number) for number in range(7, 0, -1)]
    assert (figures.first, figures.last) == (MONDAY, SUNDAY)


def test_a_user_without_orders_and_sessions_has_an_empty_week(connection: PgConnection) -> None:
    figures = weekly_figures(connection, user(connection), MONDAY, SUNDAY)
    assert (figures.week.empty, figures.week.orders, figures.week.sales, figures.week.minutes) == (True, 0, (), 0)


def test_whose_week_it_is_stands_in_the_figures(connection: PgConnection) -> None:
    user_id = user(connection, "Asia/Tokyo", name="Łukasz", email="l@example.com")
    told = weekly_figures(connection, user_id, MONDAY, SUNDAY).user
    assert (told.id, told.name, told.email, told.time_zone) == (user_id, "Łukasz", "l@example.com", "Asia/Tokyo")


def test_currencies_are_never_added_up(connection: PgConnection) -> None:
    user_id = user(connection)
    order(connection, user_id, "2026-03-23 10:00", 1000, "EUR")
    order(connection, user_id, "2026-03-23 11:00", 500, "EUR")
    order(connection, user_id, "2026-03-23 12:00", 9000, "JPY")
    order(connection, user_id, "2026-03-25 12:00", 250, "EUR")
    week = weekly_figures(connection, user_id, MONDAY, SUNDAY).week
    assert week.days[0].sales == (Sales("EUR", 2, 1500), Sales("JPY", 1, 9000))
    assert week.sales == (Sales("EUR", 3, 1750), Sales("JPY", 1, 9000))


def test_a_sum_beyond_what_a_bigint_holds_is_told_in_full(connection: PgConnection) -> None:
    user_id = user(connection)
    for _ in range(2):
        order(connection, user_id, "2026-03-23 10:00", 2**63 - 1)
    assert weekly_figures(connection, user_id, MONDAY, SUNDAY).week.sales[0].amount_minor == 2**64 - 2


def test_an_order_counts_on_the_day_that_it_was_where_the_user_lives(connection: PgConnection) -> None:
    moments = ("2026-03-22 23:30", "2026-03-27 10:30", "2026-03-30 05:00")
    found = {}
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Niue", "Asia/Kathmandu"):
        user_id = user(connection, zone)
        for moment in moments:
            order(connection, user_id, moment)
        found[zone] = orders_by_day(connection, user_id)
    assert found == {
        "UTC": {"Fri": 1},
        "Pacific/Kiritimati": {"Mon": 1, "Sat": 1},  # 14 hours ahead
        "Pacific/Niue": {"Thu": 1, "Sun": 1},  # 11 hours behind
        "Asia/Kathmandu": {"Mon": 1, "Fri": 1},  # 5:45 ahead
    }


def test_the_day_on_which_the_clock_goes_forward_is_an_hour_shorter(connection: PgConnection) -> None:
    user_id = user(connection, "Europe/Berlin")
    for moment in ("2026-03-28 22:59:59", "2026-03-28 23:00", "2026-03-29 21:59:59", "2026-03-29 22:00"):
        order(connection, user_id, moment)
    assert orders_by_day(connection, user_id) == {"Sat": 1, "Sun": 2}


def test_the_day_on_which_the_clock_goes_back_is_an_hour_longer(connection: PgConnection) -> None:
    user_id = user(connection, "Europe/Berlin")
    for moment in ("2026-10-24 22:00", "2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 22:59:59"):
        order(connection, user_id, moment)
    assert orders_by_day(connection, user_id, date(2026, 10, 19)) == {"Sun": 4}


def test_a_midnight_that_comes_twice_or_never_belongs_to_its_own_day(connection: PgConnection) -> None:
    # Havana goes back from 01:00 to 00:00, so both hours after midnight are Sunday's; Cairo's Friday starts at 01:00.
    havana, cairo = user(connection, "America/Havana"), user(connection, "Africa/Cairo")
    for moment in ("2026-11-01 04:30", "2026-11-01 05:30"):
        order(connection, havana, moment)
    for moment in ("2026-04-23 21:30", "2026-04-23 22:00"):
        order(connection, cairo, moment)
    sunday_first, friday_first = (
        weekly_figures(connection, havana, date(2026, 11, 1), date(2026, 11, 7)).week.days[0],
        weekly_figures(connection, cairo, date(2026, 4, 24), date(2026, 4, 30)).week.days[0],
    )
    assert (sunday_first.orders, friday_first.orders) == (2, 1)


def test_a_session_counts_on_the_day_on_which_it_began_until_it_expired_or_the_day_was_over(
    connection: PgConnection,
) -> None:
    user_id = user(connection, "Europe/Berlin")
    session(connection, user_id, "2026-03-24 10:00", "2026-03-24 10:30:59")
    session(connection, user_id, "2026-03-24 11:00", "2026-03-24 11:15")
    session(connection, user_id, "2026-03-25 22:00", "2026-04-25 22:00")  # an hour before the user's midnight
    days = weekly_figures(connection, user_id, MONDAY, SUNDAY).week.days
    assert [(day.sessions, day.minutes) for day in days] == [(0, 0), (2, 45), (1, 60), *[(0, 0)] * 4]


def test_a_session_that_expired_before_it_began_lasted_no_time(connection: PgConnection) -> None:
    user_id = user(connection)
    session(connection, user_id, "2026-03-24 10:00", "2026-03-24 09:00")
    week = weekly_figures(connection, user_id, MONDAY, SUNDAY).week
    assert (week.sessions, week.minutes) == (1, 0)


def test_the_week_before_stands_apart_and_others_do_not_count(connection: PgConnection) -> None:
    user_id, other = user(connection), user(connection)
    order(connection, user_id, "2026-03-22 23:59:59", 700)
    order(connection, user_id, "2026-03-16 00:00", 300)
    order(connection, user_id, "2026-03-15 23:59:59", 9)
    session(connection, user_id, "2026-03-17 10:00", "2026-03-17 10:20")
    order(connection, other, "2026-03-24 10:00")
    session(connection, other, "2026-03-24 10:00", "2026-03-24 11:00")
    figures = weekly_figures(connection, user_id, MONDAY, SUNDAY)
    assert figures.week.empty
    assert (figures.before.sales, figures.before.minutes) == ((Sales("EUR", 2, 1000),), 20)


def test_a_user_that_is_not_there_is_named(connection: PgConnection) -> None:
    with pytest.raises(UserNotFound, match="there is no user 404404; correct user_id"):
        weekly_figures(connection, 404404, MONDAY, SUNDAY)


def test_a_time_zone_that_is_none_is_named_with_what_to_do(connection: PgConnection) -> None:
    user_id = user(connection, "Mars/Olympus")
    with pytest.raises(
        TimeZoneUnknown, match=f"user {user_id} has the time zone 'Mars/Olympus', .* set example.users.time_zone"
    ):
        weekly_figures(connection, user_id, MONDAY, SUNDAY)
