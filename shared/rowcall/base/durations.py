"""Formats durations for people."""

from __future__ import annotations

from datetime import timedelta


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
