"""Times and durations as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from rowcall.base.errors import ScheduleInvalid
from rowcall.base.timestamps import with_plus
from rowcall.schedule.fields import shown
from rowcall.schedule.zones import first_valid_after, instant_of

LONGEST = timedelta(days=3653)
"""Ten years: a longer duration is a mistake in the unit."""

SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}

# A number and its unit; the first letter of the unit counts, so m is a minute, and months are not allowed.
PART = r"([0-9]+(?:\.[0-9]+)?) ?(w|d|h|m|s|weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?) ?"
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEAR_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
DAY_AND_TIME = r"(next )?([a-z]+)(?: (?:at )?([0-9]{1,2}):([0-9]{2}))?"

DURATIONS = "write seconds, '90s', '15 minutes', '1h30m' or '2 days'"
MOMENTS = (
    "write 'now', '2026-03-29 02:30', '2026-03-29T02:30+01:00', 'tomorrow 09:00', 'next monday 9:00', '10m',"
    " 'in 3 hours' or '2 days ago'"
)


def moment(text: str, now: datetime, zone: ZoneInfo, past: bool = False) -> datetime:
    """Return the instant that a person means, in UTC; a day, or a time without an offset, is read in the zone.

    A duration alone is added to now, or subtracted if `past` is set.
    """
    words = " ".join(text.lower().split())
    try:
        if words == "now":
            return now.astimezone(UTC)
        if _in_units(words) is not None:
            words = f"{words} ago" if past else f"in {words}"
        for read in (_shifted, _day, _iso):
            found = read(words, now.astimezone(zone), zone)
            if found is not None:
                return found.astimezone(UTC)
    except OverflowError:
        raise ScheduleInvalid(None, f"{shown(text)} is before the year 1 or after the year 9999 in UTC") from None
    except ValueError:
        pass  # the date or hour does not exist
    raise ScheduleInvalid(None, f"{shown(text)} is not a time: {MOMENTS}")


def duration(value: str | int | float) -> timedelta:
    """Return a duration of at most ten years, from seconds as a number or from words with units."""
    seconds = _seconds(value)
    if seconds is None:
        raise ScheduleInvalid(None, f"{_told(value)} is not a duration: {DURATIONS}")
    # Written so that NaN is refused too.
    if not 0 <= seconds <= LONGEST.total_seconds():
        raise ScheduleInvalid(None, f"{_told(value)} is not between 0 and ten years: {DURATIONS}")
    return timedelta(seconds=seconds)


def _told(value: str | int | float) -> str:
    try:
        return shown(str(value))
    except ValueError:  # Python refuses to print numbers with thousands of digits
        return "a number this large"


def _seconds(value: str | int | float) -> float | None:
    if not isinstance(value, str):
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    words = " ".join(value.lower().split())
    return float(words) if re.fullmatch(NUMBER, words) else _in_units(words)


def _in_units(words: str) -> float | None:
    if not re.fullmatch(f"(?:{PART})+", words):
        return None
    return sum(float(number) * SECONDS[unit[0]] for number, unit in re.findall(PART, words))


def _shifted(words: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Parse "in 3 hours", "+90 minutes" or "3 days ago" as elapsed time, independent of clock changes."""
    ahead, ago = re.fullmatch(r"(?:in |\+ ?)(.+)", words), re.fullmatch(r"(.+) ago", words)
    seconds = _in_units(ahead[1] if ahead else ago[1] if ago else "")
    if seconds is None:
        return None
    length = timedelta(seconds=seconds)
    return now.astimezone(UTC) + (length if ahead else -length)


def _day(words: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Parse today, tomorrow, yesterday or a weekday; its start, unless a time is given."""
    read = re.fullmatch(DAY_AND_TIME, words)
    if read is None:
        return None
    upcoming, name, hour, minute = read.groups()
    start = datetime.combine(now.date(), time(int(hour or 0), int(minute or 0)))
    if name in NEAR_DAYS and not upcoming:
        return _on_the_wall(start + timedelta(days=NEAR_DAYS[name]), zone)
    if name not in WEEKDAYS:
        return None
    start += timedelta(days=(WEEKDAYS.index(name) - now.weekday()) % 7)
    found = _on_the_wall(start, zone)
    return found if found > now.astimezone(UTC) else _on_the_wall(start + timedelta(days=7), zone)


def _iso(words: str, now: datetime, zone: ZoneInfo) -> datetime:
    read = datetime.fromisoformat(with_plus(words.upper()))
    return read if read.tzinfo else _on_the_wall(read, zone)


def _on_the_wall(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant with this local time, or the first valid one after it if a clock change skips it."""
    return instant_of(wall, zone) or first_valid_after(wall, zone)
