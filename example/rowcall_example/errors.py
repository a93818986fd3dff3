"""This app's own errors.

Those that are Permanent end a run at once, because another attempt cannot help; routes respond to them with 404 or 422.
"""

from __future__ import annotations

from collections.abc import Sequence

from rowcall import Permanent


class UserNotFound(Permanent):
    """No user has this id."""

    def __init__(self, user_id: int) -> None:
        super().__init__(f"there is no user {user_id}; correct user_id")


class InvoiceNotFound(Permanent):
    """No invoice has this id."""

    def __init__(self, invoice_id: int) -> None:
        super().__init__(f"there is no invoice {invoice_id}; correct invoice_id")


class CacheNameUnknown(Permanent):
    """No SQL computes a cache entry with this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"nothing computes a cache entry {name!r}; known: {', '.join(known)}")


class TimeZoneUnknown(Permanent):
    """PostgreSQL does not know a user's time zone."""

    def __init__(self, user_id: int, time_zone: str) -> None:
        super().__init__(
            f"user {user_id} has the time zone {time_zone!r}, which PostgreSQL does not know; set"
            " example.users.time_zone to a name of pg_timezone_names, such as Europe/Berlin, and retry the run"
        )


class DemoRefused(Exception):
    """The demo must not be added to this database."""
