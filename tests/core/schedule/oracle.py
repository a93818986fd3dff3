"""The meaning of a schedule, found minute by minute: walk through UTC, and ask zoneinfo for the local time.

It does not use cronsim or rowcall.schedule.  It finds clock changes by comparing each minute's local time with that of
the minute before, and repeated local times by remembering those that have come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, start=1)}
WEEKDAYS = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}


class Oracle:
    """One expression, as sets of minutes and hours and a check of each date."""

    def __init__(self, expression: str) -> None:
        minute, hour, self.days, month, self.weekdays = expression.upper().split()
        self.minutes = values(minute, 0, 59)
        self.hours = values(hour, 0, 23)
        self.months = values(month, 1, 12, MONTHS)
        self.elapsed = hour.startswith("*")
        self.on = cache(self._on)

    def times(self, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
        """Return every instant with start < instant <= end, both whole minutes in UTC."""
        found = []
        came: set[datetime] = set()
        # Start two days earlier, to know which local times have come already.
        for instant, wall, jumped in self._walk(zone, start - 2 * DAY, end):
            due = not self.elapsed and any(self.matches(time) for time in jumped)
            if self.matches(wall):
                due = due or self.elapsed or wall not in came
                came.add(wall)
            if due and instant > start:
                found.append(instant)
        return found

    def _walk(
        self, zone: ZoneInfo, start: datetime, end: datetime
    ) -> Iterator[tuple[datetime, datetime, list[datetime]]]:
        """Yield each minute, its local time, and the skipped local times; leave out days that cannot match."""
        day = start.date()
        while day <= end.date():
            if any(self.on(day + shift * DAY) for shift in (-1, 0, 1)):
                instant = datetime.combine(day, time(), UTC)
                before = wall_of(instant - MINUTE, zone)
                for _ in range(1440):
                    wall = wall_of(instant, zone)
                    yield instant, wall, [] if wall - before == MINUTE else list(between(before, wall))
                    if instant == end:
                        return
                    instant, before = instant + MINUTE, wall
            day += DAY

    def matches(self, wall: datetime) -> bool:
        """Whether the expression matches this local time."""
        return wall.minute in self.minutes and wall.hour in self.hours and self.on(wall.date())

    def _on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day = any(_is_day(item, day) for item in self.days.split(","))
        by_weekday = any(_is_weekday(item, day) for item in self.weekdays.split(","))
        if self.days.startswith("*") or self.weekdays.startswith("*"):
            return by_day and by_weekday
        return by_day or by_weekday


def values(text: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    """Return the numbers that a list of items contains."""
    return {value for item in text.split(",") for value in _item(item, low, high, names or {})}


def wall_of(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def between(before: datetime, wall: datetime) -> Iterator[datetime]:
    """Yield the minutes between two local times."""
    while (before := before + MINUTE) < wall:
        yield before


def _item(item: str, low: int, high: int, names: dict[str, int]) -> range:
    read = re.fullmatch(r"(\*|(?P<first>\w+)(-(?P<last>\w+))?)(/(?P<step>\d+))?", item)
    assert read, item

    def number(text: str) -> int:
        return names[text] if text in names else int(text)

    first = number(read["first"]) if read["first"] else low
    # "5" is one value, but "5/15" goes on to the end.
    last = number(read["last"]) if read["last"] else first if read["first"] and not read["step"] else high
    return range(first, last + 1, int(read["step"] or 1))


def _is_day(item: str, day: date) -> bool:
    if item == "L":
        return (day + DAY).month != day.month
    if item == "LW":
        rest = [day + shift * DAY for shift in range(1, 8) if (day + shift * DAY).month == day.month]
        return day.day >= 20 and day.weekday() < 5 and all(later.weekday() >= 5 for later in rest)
    return day.day in values(item, 1, 31)


def _is_weekday(item: str, day: date) -> bool:
    if item.endswith("L"):
        return _is_weekday(item[:-1], day) and (day + 7 * DAY).month != day.month
    name, _, nth = item.partition("#")
    if nth and (day.day + 6) // 7 != int(nth):
        return False
    return day.isoweekday() % 7 in {value % 7 for value in values(name, 0, 7, WEEKDAYS)}
