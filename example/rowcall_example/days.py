"""The business day: cleanup, invoices and sales keep to UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta


def utc_day(day: date) -> tuple[datetime, datetime]:
    """The day's first moment in UTC, and the first after it."""
    start = datetime.combine(day, time(), UTC)
    return start, start + timedelta(days=1)
