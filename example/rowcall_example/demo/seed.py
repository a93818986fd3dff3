"""The demo: a small SaaS, with what its users did in the three weeks before a day.

The same day gives the same rows, at any time and on any machine.  Nothing in it happened on that day or later, but
invoices may be due and entries may expire then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from random import Random

from rowcall_example.demo.rows import CACHED, DOMAIN, chance_of, email_of, invoices, orders, sessions, user
from rowcall_example.errors import DemoRefused
from rowcall_example.sql import Connection, Row, fetch_all, fetch_value
from rowcall_example.tables import create_tables


@dataclass(frozen=True)
class Seeded:
    """How many rows were added for which day."""

    today: date
    users: int = 0
    orders: int = 0
    invoices: int = 0
    sessions: int = 0
    cache_entries: int = 0


# Otherwise, two concurrent calls would both add the same users.
LOCK_USERS = "LOCK TABLE example.users IN SHARE ROW EXCLUSIVE MODE"

TODAY = "SELECT (now() AT TIME ZONE 'UTC')::date"

THERE = "SELECT email FROM example.users WHERE email = ANY (%(emails)s)"

# Users are added as of this many days before the demo's day.
SEEDED_ON = f"""
SELECT max((created_at AT TIME ZONE 'UTC')::date + 90) FROM example.users WHERE email LIKE '%%@{DOMAIN}'
"""

# Ids are not used again, so that nothing new is mistaken for something that was mailed or charged before.
DELETE_ALL = f"""
WITH demo AS (SELECT id FROM example.users WHERE email LIKE '%%@{DOMAIN}'),
    gone_orders AS (DELETE FROM example.orders WHERE user_id IN (SELECT id FROM demo)),
    gone_invoices AS (DELETE FROM example.invoices WHERE user_id IN (SELECT id FROM demo)),
    gone_sessions AS (DELETE FROM example.sessions WHERE user_id IN (SELECT id FROM demo)),
    gone_entries AS (DELETE FROM example.cache_entries WHERE name = ANY (%(names)s))
DELETE FROM example.users WHERE id IN (SELECT id FROM demo)
"""

OTHER_USERS = f"SELECT EXISTS (SELECT FROM example.users WHERE email NOT LIKE '%%@{DOMAIN}')"

# Orders and sessions have local times; those that are today or later in UTC are left out.
ADD_USERS = """
INSERT INTO example.users (email, name, time_zone, created_at)
SELECT email, name, time_zone, %(today)s::timestamp AT TIME ZONE 'UTC' - interval '90 days'
FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (email text, name text, time_zone text)
"""

ADD_ORDERS = """
INSERT INTO example.orders (user_id, amount_minor, currency, ordered_at)
SELECT users.id, amount_minor, currency, at AT TIME ZONE users.time_zone
FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (email text, amount_minor bigint, currency text, at timestamp)
JOIN example.users USING (email)
WHERE at AT TIME ZONE users.time_zone < %(today)s::timestamp AT TIME ZONE 'UTC'
ORDER BY at AT TIME ZONE users.time_zone, users.id
"""

ADD_SESSIONS = """
INSERT INTO example.sessions (user_id, started_at, expires_at)
SELECT users.id, at AT TIME ZONE users.time_zone, at AT TIME ZONE users.time_zone + minutes * interval '1 minute'
FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (email text, at timestamp, minutes integer)
JOIN example.users USING (email)
WHERE at AT TIME ZONE users.time_zone < %(today)s::timestamp AT TIME ZONE 'UTC'
ORDER BY at AT TIME ZONE users.time_zone, users.id
"""

ADD_INVOICES = """
INSERT INTO example.invoices (user_id, number, amount_minor, currency, status, due_on, created_at, paid_at)
SELECT users.id, number, amount_minor, currency, status, due_on,
    due_on::timestamp AT TIME ZONE 'UTC' - interval '40 days',
    CASE WHEN status = 'paid' THEN due_on::timestamp AT TIME ZONE 'UTC' - interval '30 hours' END
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS row (email text, number text, amount_minor bigint, currency text, status text, due_on date)
JOIN example.users USING (email)
ORDER BY number
"""

ADD_CACHE_ENTRIES = """
INSERT INTO example.cache_entries (name, value, refreshed_at, expires_at)
SELECT name, '{"demo": true}', %(today)s::timestamp AT TIME ZONE 'UTC' - interval '15 days',
    (%(today)s + days)::timestamp AT TIME ZONE 'UTC'
FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (name text, days integer)
ON CONFLICT (name) DO NOTHING
"""


def seeded_on(connection: Connection) -> date | None:
    """Return the day as of which the demo's rows were made; None if there are none."""
    create_tables(connection)
    day: date | None = fetch_value(connection, SEEDED_ON)
    return day


def seed(connection: Connection, users: int, today: date | None = None, anew: bool = False) -> Seeded:
    """Add the demo's first users that do not exist yet, with everything they did; existing users do not change.

    With `anew`, the demo's rows are deleted first, so that all of them are made as of this day.
    Raises DemoRefused if there are other users, because the demo's orders and invoices would count among theirs.
    """
    create_tables(connection)
    fetch_all(connection, LOCK_USERS)
    day: date = today or fetch_value(connection, TODAY)
    if anew:
        fetch_all(connection, DELETE_ALL, {"names": [name for name, _ in CACHED]})
    emails = {number: email_of(number) for number in range(1, users + 1)}
    there = {row["email"] for row in fetch_all(connection, THERE, {"emails": list(emails.values())})}
    missing = [number for number, email in emails.items() if email not in there]
    if not missing:
        return Seeded(day)
    if fetch_value(connection, OTHER_USERS):
        raise DemoRefused(
            f"this database has users that are not the demo's (their addresses do not end in @{DOMAIN}), and the demo's"
            " orders and invoices would be counted with theirs: set DATABASE_URL to a database without such users"
        )
    chances = {number: chance_of(number, day) for number in missing}

    def rows_of(make: Callable[[int, date, Random], Iterator[Row]]) -> list[Row]:
        return [row for number in missing for row in make(number, day, chances[number])]

    def add(statement: str, rows: list[Row]) -> int:
        return len(fetch_all(connection, f"{statement} RETURNING 1", {"rows": json.dumps(rows), "today": day}))

    return Seeded(
        day,
        users=add(ADD_USERS, rows_of(user)),
        orders=add(ADD_ORDERS, rows_of(orders)),
        invoices=add(ADD_INVOICES, rows_of(invoices)),
        sessions=add(ADD_SESSIONS, rows_of(sessions)),
        cache_entries=add(ADD_CACHE_ENTRIES, [{"name": name, "days": days} for name, days in CACHED]),
    )
