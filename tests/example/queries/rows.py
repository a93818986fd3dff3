"""Insert rows into the small SaaS's tables."""

from __future__ import annotations

import itertools
from typing import Any

from rowcall.base.database import Connection, fetch_one

_numbers = itertools.count(1)


def made(connection: Connection, table: str, **columns: Any) -> Any:
    """Insert a row, and return its id or its name."""
    values = ", ".join(f"%({name})s" for name in columns)
    row = fetch_one(
        connection, f"INSERT INTO example.{table} ({', '.join(columns)}) VALUES ({values}) RETURNING *", columns
    )
    assert row is not None
    return row.get("id", row["name"] if table == "cache_entries" else None)


def user(connection: Connection, time_zone: str = "UTC", **columns: Any) -> int:
    """Insert a user, and return its id."""
    number = next(_numbers)
    given = {"email": f"user-{number}@example.com", "name": f"User {number}", "time_zone": time_zone, **columns}
    user_id: int = made(connection, "users", **given)
    return user_id


def order(
    connection: Connection, user_id: int, ordered_at: str, amount_minor: int = 1000, currency: str = "EUR"
) -> None:
    """Insert an order; the time is text with an offset, or in UTC."""
    made(
        connection,
        "orders",
        user_id=user_id,
        ordered_at=_moment(ordered_at),
        amount_minor=amount_minor,
        currency=currency,
    )


def session(connection: Connection, user_id: int, started_at: str, expires_at: str) -> int:
    """Insert a session, and return its id."""
    session_id: int = made(
        connection, "sessions", user_id=user_id, started_at=_moment(started_at), expires_at=_moment(expires_at)
    )
    return session_id


def invoice(connection: Connection, user_id: int, due_on: str, **columns: Any) -> int:
    """Insert an open invoice, and return its id."""
    given = {"number": f"N-{next(_numbers)}", "amount_minor": 123450, "currency": "EUR", "due_on": due_on, **columns}
    invoice_id: int = made(connection, "invoices", user_id=user_id, **given)
    return invoice_id


def _moment(text: str) -> str:
    return text if "+" in text[10:] or "-" in text[10:] or text == "now()" else f"{text}+00"
