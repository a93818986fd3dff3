"""The demo's rows: the same for the same day, added once, and never beside a real user."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall_example.demo.runs import USERS, prepare
from rowcall_example.demo.seed import Seeded, seed, seeded_on
from rowcall_example.errors import DemoRefused
from rowcall_example.queries import due_invoices, sales_of_day, weekly_figures
from rowcall_example.queries.invoices import REMINDER_DAYS
from tests.example.queries.rows import user

TODAY = date(2026, 11, 21)
COUNTED = ("users", "orders", "invoices", "sessions", "cache_entries")

# Everything except the ids, which the database assigns.
ROWS = """
SELECT 'user' AS kind, to_jsonb(users) - 'id' AS told FROM example.users
UNION ALL SELECT 'order', to_jsonb(orders) - 'id' - 'user_id' || jsonb_build_object('email', email)
FROM example.orders JOIN example.users ON users.id = user_id
UNION ALL SELECT 'invoice', to_jsonb(invoices) - 'id' - 'user_id' || jsonb_build_object('email', email)
FROM example.invoices JOIN example.users ON users.id = user_id
UNION ALL SELECT 'session', to_jsonb(sessions) - 'id' - 'user_id' || jsonb_build_object('email', email)
FROM example.sessions JOIN example.users ON users.id = user_id
UNION ALL SELECT 'cache', to_jsonb(cache_entries) FROM example.cache_entries
ORDER BY 1, 2
"""


def rows(connection: PgConnection) -> list[Row]:
    return fetch_all(connection, ROWS)


def counts(connection: PgConnection) -> dict[str, int]:
    return {table: fetch_value(connection, f"SELECT count(*) FROM example.{table}") for table in COUNTED}


def test_what_it_says_it_added_is_there(connection: PgConnection) -> None:
    seeded = seed(connection, 20, TODAY)
    assert vars(seeded) == {"today": TODAY, **counts(connection)}
    assert (seeded.users, seeded.invoices, seeded.cache_entries) == (20, 80, 5)
    assert seeded.orders > 500
    assert seeded.sessions > 150


def test_the_same_day_gives_the_same_rows_in_any_time_zone_and_another_day_others(connection: PgConnection) -> None:
    found = []
    for today, zone in ((TODAY, "UTC"), (TODAY, "Asia/Tokyo"), (TODAY + timedelta(days=1), "UTC")):
        fetch_all(connection, "SAVEPOINT seeded")
        fetch_all(connection, f"SET LOCAL TIME ZONE '{zone}'")
        seed(connection, 5, today)
        fetch_all(connection, "SET LOCAL TIME ZONE 'UTC'")
        found.append(rows(connection))
        fetch_all(connection, "ROLLBACK TO SAVEPOINT seeded")
    assert found[0] == found[1] != found[2]


def test_a_second_time_adds_nothing_also_on_a_later_day(connection: PgConnection) -> None:
    seed(connection, 3, TODAY)
    before = rows(connection)
    assert seed(connection, 3, TODAY) == Seeded(TODAY)
    assert seed(connection, 2, TODAY + timedelta(days=9)).users == 0
    assert rows(connection) == before


def test_the_demo_can_be_seen_anew_on_a_later_day(connection: PgConnection) -> None:
    later = TODAY + timedelta(days=40)
    seed(connection, 3, TODAY)
    ids = {row["id"] for row in fetch_all(connection, "SELECT id FROM example.invoices")}
    assert seeded_on(connection) == TODAY
    assert seed(connection, 3, later, anew=True).users == 3
    assert seeded_on(connection) == later
    assert ids.isdisjoint(row["id"] for row in fetch_all(connection, "SELECT id FROM example.invoices"))
    anew = fetch_all(connection, "SELECT number, due_on FROM example.invoices ORDER BY number")
    connection.rollback()
    seed(connection, 3, later)
    assert fetch_all(connection, "SELECT number, due_on FROM example.invoices ORDER BY number") == anew


def test_a_start_on_a_later_day_has_rows_of_that_day(connection: PgConnection, tmp_path: Path) -> None:
    today: date = fetch_value(connection, "SELECT (now() AT TIME ZONE 'UTC')::date")
    seed(connection, USERS, today - timedelta(days=9))
    demo = prepare(connection, tmp_path)
    assert demo is not None
    assert (demo.seeded.today, seeded_on(connection)) == (today, today)


def test_more_users_are_added_to_those_that_are_there_as_if_all_had_come_at_once(connection: PgConnection) -> None:
    seed(connection, 4, TODAY)
    assert seed(connection, 6, TODAY).users == 2
    in_steps = rows(connection)
    connection.rollback()
    seed(connection, 6, TODAY)
    assert rows(connection) == in_steps


def test_nothing_happened_on_its_day_or_later_nor_more_than_three_weeks_before(connection: PgConnection) -> None:
    seed(connection, 40, TODAY)
    fetch_all(connection, "SET LOCAL TIME ZONE 'UTC'")
    for moment, table in (("ordered_at", "orders"), ("started_at", "sessions")):
        first, last = fetch_all(
            connection, f"SELECT min({moment}) AS first, max({moment}) AS last FROM example.{table}"
        )[0].values()
        assert TODAY - timedelta(days=22) <= first.date() < last.date() == TODAY - timedelta(days=1)


def test_every_job_finds_something_to_do(connection: PgConnection) -> None:
    seed(connection, 20, TODAY)
    assert {reminder.kind for reminder in due_invoices(connection, TODAY, 0, 100)} == set(REMINDER_DAYS)
    assert len(sales_of_day(connection, TODAY - timedelta(days=1)).currencies) > 3
    for table in ("sessions", "cache_entries"):
        expired = f"SELECT count(*) FILTER (WHERE expires_at < %(today)s) AS old, count(*) AS all FROM example.{table}"
        [told] = fetch_all(connection, expired, {"today": TODAY})
        assert 0 < told["old"] < told["all"]


@pytest.mark.parametrize("weekday", range(7))
def test_the_last_whole_week_has_figures_beside_it_and_one_user_had_a_quiet_one(
    connection: PgConnection, weekday: int
) -> None:
    today = date(2026, 11, 16) + timedelta(days=weekday)
    seed(connection, 20, today)
    sunday = today - timedelta(days=weekday + 1)
    users = fetch_all(connection, "SELECT id FROM example.users ORDER BY email")
    told = [weekly_figures(connection, row["id"], sunday - timedelta(days=6), sunday) for row in users]
    assert all(figures.week.orders and figures.before.orders for figures in told[:-1])
    assert told[-1].week.empty
    assert not told[-1].before.empty


def test_a_database_with_other_users_is_left_alone(connection: PgConnection) -> None:
    user(connection, email="somebody@shop.test")
    with pytest.raises(
        DemoRefused, match="users that are not the demo's .* set DATABASE_URL to a database without such users"
    ):
        seed(connection, 1, TODAY)
    assert counts(connection) == {"users": 1, "orders": 0, "invoices": 0, "sessions": 0, "cache_entries": 0}


def test_a_demo_that_is_complete_is_no_reason_to_refuse(connection: PgConnection) -> None:
    seed(connection, 1, TODAY)
    user(connection, email="somebody@shop.test")
    assert seed(connection, 1, TODAY).users == 0


def test_todays_day_is_the_databases(connection: PgConnection) -> None:
    assert seed(connection, 1).today == fetch_value(connection, "SELECT (now() AT TIME ZONE 'UTC')::date")


def test_two_who_seed_at_once_add_it_once(fresh_url: str) -> None:
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        assert seed(one, 2, TODAY).users == 2
        fetch_all(other, "SET LOCAL lock_timeout = '1ms'")
        with pytest.raises(Exception, match="lock timeout"):
            seed(other, 2, TODAY)
        other.rollback()
        one.commit()
        assert seed(other, 2, TODAY).users == 0
