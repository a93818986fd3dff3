"""Times that a caller may send."""

from __future__ import annotations

import re
from datetime import UTC, datetime

# Times outside are mistakes, and near the year 10000 Python could not read them back in another zone.
YEARS = range(2000, 9999)


def unusable(moment: datetime) -> str | None:
    """Why this time cannot be used, in the words that follow a field's name; None where it can."""
    if moment.tzinfo is None:
        return "must carry an offset, such as 2026-03-29T09:00:00+02:00"
    if moment.year not in YEARS:
        return f"must be a time in the years {YEARS[0]} to {YEARS[-1]}, not in {moment.year}"
    # It is kept in UTC, where an offset may put it into the year before or after.
    year = moment.astimezone(UTC).year
    if year not in YEARS:
        return f"must be a time in the years {YEARS[0]} to {YEARS[-1]} in UTC too, where it is in {year}"
    return None


def with_plus(text: str) -> str:
    """The same ISO 8601 with the `+` of its offset, which a URL that does not write it `%2B` makes a space."""
    return re.sub(r"(:[0-9.]+) ([0-9]{2}:[0-9]{2})$", r"\1+\2", text)


def in_utc(moment: datetime | None) -> datetime | None:
    """The same instant; PostgreSQL does not take every offset that Python does."""
    return moment and moment.astimezone(UTC)
