"""Checks times that a caller sends."""

from __future__ import annotations

import re
from datetime import UTC, datetime

# Times outside these years are mistakes, and near the year 10000 Python cannot convert them to another zone.
YEARS = range(2000, 9999)


def unusable(moment: datetime) -> str | None:
    """Return why this time cannot be used, as the rest of a sentence about a field; None if it is usable."""
    if moment.tzinfo is None:
        return "must have an offset, such as 2026-03-29T09:00:00+02:00"
    if moment.year not in YEARS:
        return f"must be a time in the years {YEARS[0]} to {YEARS[-1]}, not in {moment.year}"
    # Times are stored in UTC, where the year may be the one before or after.
    year = moment.astimezone(UTC).year
    if year not in YEARS:
        return f"must be a time in the years {YEARS[0]} to {YEARS[-1]} in UTC too, not in {year}"
    return None


def with_plus(text: str) -> str:
    """Restore the `+` of a time's offset, which becomes a space in a URL that does not escape it as `%2B`."""
    return re.sub(r"(:[0-9.]+) ([0-9]{2}:[0-9]{2})$", r"\1+\2", text)


def in_utc(moment: datetime | None) -> datetime | None:
    """Convert a time to UTC, because PostgreSQL does not accept every offset that Python accepts."""
    return moment and moment.astimezone(UTC)
