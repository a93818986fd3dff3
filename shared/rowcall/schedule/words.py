"""A schedule in words, for the common forms; any other expression is shown unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rowcall.schedule.expression import Expression
from rowcall.schedule.fields import HOUR, MINUTE, MONTHS, WEEKDAYS, Field

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
NUMBERS = ("first", "second", "third", "fourth", "fifth")

# Longer lists are harder to read in words than in the expression.
LISTED_MOST = 4

WHOLE = re.compile(r"[0-9]+")

# A number or a name of three letters, unlike the L of a last day.
WORD = re.compile(r"[0-9]+|[A-Za-z]{3}")
NAMED_RANGE = re.compile(r"([0-9]+|[A-Za-z]{3})-([0-9]+|[A-Za-z]{3})")

# MON#2, or 5L.
NTH = re.compile(r"(?:([0-9]+|[A-Za-z]{3})#([0-9])|([0-9]+)[Ll])")


class _NotCommon(Exception):
    """The expression has a form that is not put into words here."""


def schedule_words(expression: Expression, zone: str) -> str:
    """Return the schedule in words, such as "every day at 03:17, Europe/Berlin"; otherwise the expression itself."""
    minute, hour, day, month, weekday = expression.cron.split()
    try:
        days = _days(day, month, weekday)
        repeated = _repeated(minute, hour)
        if repeated is None:
            return f"{days or 'every day'} at {_times(minute, hour)}, {zone}"
        return ", ".join(filter(None, (repeated, days, zone)))
    except _NotCommon:
        return f"{expression.text}, {zone}"


def _times(minute: str, hour: str) -> str:
    """Return the times of day, if each of them is named."""
    minutes, hours = _values(minute), _values(hour)
    if len(minutes) * len(hours) > LISTED_MOST:
        raise _NotCommon
    return _list([f"{one:02}:{other:02}" for one in hours for other in minutes])


def _repeated(minute: str, hour: str) -> str | None:
    """Return in words what repeats more often than a few times a day; None if the fields name the times of day."""
    step = _step(minute, MINUTE)
    if hour == "*" or _step(hour, HOUR):
        every = _step(hour, HOUR) or 1
        if step:
            if every > 1:
                raise _NotCommon
            return _every(step, "minute")
        (at,) = _values(minute, 1)
        return f"{_every(every, 'hour')} at minute {at}"
    if "-" in hour:
        first, last = _range(hour)
        if step:
            return f"{_every(step, 'minute')} from {first:02}:00 to {last:02}:{60 - step:02}"
        (at,) = _values(minute, 1)
        return f"every hour from {first:02}:{at:02} to {last:02}:{at:02}"
    if step:
        hours = _values(hour, 1)
        return f"{_every(step, 'minute')} from {hours[0]:02}:00 to {hours[0]:02}:{60 - step:02}"
    return None


def _every(number: int, unit: str) -> str:
    return f"every {unit}" if number == 1 else f"every {number} {unit}s"


def _step(text: str, field: Field) -> int | None:
    """Return the step of * or */15 if its times are evenly spaced; otherwise None."""
    if text == "*":
        return 1
    base, _, step = text.partition("/")
    if base != "*":
        return None
    if (field.high + 1) % int(step):
        raise _NotCommon
    return int(step)


def _days(day: str, month: str, weekday: str) -> str:
    """Return the days, or nothing for every day.  If both fields name days, cron's rule has no common words."""
    months = _months(month)
    if day == "*" and weekday == "*":
        return f"every day in {months}" if months else ""
    if day == "*":
        return _weekdays(weekday, months)
    if weekday != "*":
        raise _NotCommon
    of = months or "each month"
    if day.upper() in ("L", "LW"):
        return f"on the last {'day' if day.upper() == 'L' else 'day from Monday to Friday'} of {of}"
    if "-" in day:
        first, last = _range(day)
        return f"on days {first} to {last} of {of}"
    days = [str(one) for one in _values(day)]
    return f"on day{'' if len(days) == 1 else 's'} {_list(days)} of {of}"


def _weekdays(text: str, months: str) -> str:
    within = f" in {months}" if months else ""
    if nth := NTH.fullmatch(text):
        name, number = nth[1] or nth[3], nth[2]
        which = NUMBERS[int(number) - 1] if number else "last"
        return f"on the {which} {_weekday(name)} of {months or 'each month'}"
    if ends := NAMED_RANGE.fullmatch(text):
        return f"{_ends(_weekday(ends[1]), _weekday(ends[2]))}{within}"
    return f"on {_list([f'{_weekday(one)}s' for one in _plain(text, len(DAYS))])}{within}"


def _weekday(text: str) -> str:
    number = WEEKDAYS.index(text.upper()) if text.upper() in WEEKDAYS else int(text)
    return DAYS[number % 7]


def _months(text: str) -> str:
    """Return the names of the months, or nothing for all."""
    if text == "*":
        return ""
    if ends := NAMED_RANGE.fullmatch(text):
        return _ends(_month(ends[1]), _month(ends[2]))
    return _list([_month(one) for one in _plain(text, len(MONTH_NAMES))])


def _month(text: str) -> str:
    return MONTH_NAMES[MONTHS.index(text.upper()) if text.upper() in MONTHS else int(text) - 1]


def _plain(text: str, most: int = LISTED_MOST) -> list[str]:
    """Return the items of a list without ranges and steps."""
    items = text.split(",")
    if len(items) > most or not all(WORD.fullmatch(item) for item in items):
        raise _NotCommon
    return items


def _ends(first: str, last: str) -> str:
    if first == last:  # the one day, or in 0-7 all of them
        raise _NotCommon
    return f"{first} to {last}"


def _values(text: str, most: int = LISTED_MOST) -> list[int]:
    """Return the values of a list of numbers, in their order."""
    items = _plain(text, most)
    if not all(WHOLE.fullmatch(item) for item in items):
        raise _NotCommon
    return sorted({int(item) for item in items})


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (WHOLE.fullmatch(first) and WHOLE.fullmatch(last)):
        raise _NotCommon
    return int(first), int(last)


def _list(items: Sequence[str]) -> str:
    """Join items as a sentence does."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
