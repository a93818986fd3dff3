"""Users, with their addresses and time zones."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall_example.errors import UserNotFound
from rowcall_example.sql import Connection, fetch_one

# Uses the primary key.
GET_USER = "SELECT id, email, name, time_zone FROM example.users WHERE id = %(user_id)s"


@dataclass(frozen=True)
class User:
    """A customer of the SaaS; `time_zone` is an IANA name."""

    id: int
    email: str
    name: str
    time_zone: str


def get_user(connection: Connection, user_id: int) -> User:
    """Return the user, or raise UserNotFound."""
    row = fetch_one(connection, GET_USER, {"user_id": user_id})
    if row is None:
        raise UserNotFound(user_id)
    return User(**row)
