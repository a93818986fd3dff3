"""The business day: cleanups, invoices and sales use days in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta


def utc_day(day: date) -> tuple[datetime, datetime]:
    """Return the start of the day and the start of the next day, in UTC."""
    start = datetime.combine(day, time(), UTC)
    return start, start + timedelta(days=1)
