"""Formats durations and times for people."""

from __future__ import annotations

from datetime import datetime, timedelta

# Times that are further away than this are shown as a date.
NEAR = timedelta(days=60)


def duration_words(length: timedelta) -> str:
    """Format a duration, as in "2 h 5 min", without rounding, so that a message can compare two of them."""
    minutes, seconds = divmod(length, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = (
        f"{days} day{'' if days == 1 else 's'}" if days else "",
        f"{hours} h" if hours else "",
        f"{minutes} min" if minutes else "",
        f"{seconds.total_seconds():g} s" if seconds else "",
    )
    return " ".join(filter(None, parts)) or "0 s"


def relative(moment: datetime, now: datetime) -> str:
    """Return how long ago or ahead a time is, such as "3 min ago", in one unit only."""
    length = abs(moment - now)
    if length > NEAR:
        return moment.date().isoformat()
    units = (("day", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))
    # A unit is used if there are at least two of it; otherwise the next smaller unit is more useful.
    unit, size = next((one for one in units if length >= 2 * one[1]), ("s", timedelta(seconds=1)))
    count = length // size
    if not count:
        return "now"
    words = f"{count} {unit}{'s' if unit == 'day' else ''}"
    return f"in {words}" if moment > now else f"{words} ago"
