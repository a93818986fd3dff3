"""The five fields of a cron expression, parsed item by item so that an error can say what is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from rowcall.base.errors import ScheduleInvalid

WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

WEEKS_IN_MONTH = 5

# Everything that people write for a last day: L, LW, 5L, FRIL, L-3, L/2.
LIKE_LAST = re.compile(r"(\d+|[a-z]{3})?L(W|[-/]\d+)?", re.IGNORECASE)


def shown(text: str) -> str:
    """Return the text for an error: quoted and shortened."""
    return repr(text if len(text) <= 40 else text[:39] + "…")


@dataclass(frozen=True)
class Field:
    """One of the five fields: its values, their names, and an example."""

    name: str
    plural: str
    low: int
    high: int
    example: str
    names: Sequence[str] = ()

    def check(self, text: str) -> None:
        """Raise ScheduleInvalid unless the text is a list of valid items."""
        if not text.isascii():
            # Other scripts have digits too, which Python's int accepts and cron does not.
            self._refuse(text, self._no_value(text))
        for item in text.split(","):
            if not item:
                self._refuse(text, "has an empty item in its list")
            if not self._special(item):
                self._plain(item)

    def _special(self, item: str) -> bool:
        """Return whether the item is L, LW, 5L or MON#2; refuse it in a field that does not allow it."""
        if "?" in item:
            self._refuse(item, "has a '?', which is not supported", ": write *")
        if "#" in item:
            return self._nth(item)
        return self._last(item) if LIKE_LAST.fullmatch(item) else False

    def _nth(self, item: str) -> bool:
        if self is not WEEKDAY:
            self._refuse(item, "has a '#', which only the weekday field allows", ", as in MON#2")
        day, _, number = item.partition("#")
        self._value(item, day)
        if not (number.isdigit() and 1 <= int(number) <= WEEKS_IN_MONTH):
            self._refuse(item, f"must have a number from 1 to {WEEKS_IN_MONTH} after the '#'", ", as in MON#2")
        return True

    def _last(self, item: str) -> bool:
        if self is WEEKDAY:
            if not (item[:-1].isdigit() and item[-1] in "Ll"):
                self._refuse(item, "is not supported", ": 5L is the last Friday of the month")
            self._value(item, item[:-1])
        elif self is not DAY_OF_MONTH:
            self._refuse(item, "has an L, which only the day-of-month and weekday fields allow: write a value")
        elif item.upper() not in ("L", "LW"):
            self._refuse(item, "is not supported", ": L is the month's last day, LW its last from Monday to Friday")
        return True

    def _plain(self, item: str) -> None:
        base, slash, step = item.partition("/")
        if slash:
            self._step(item, base, step)
        if base == "*":
            return
        first, dash, last = base.partition("-")
        start = self._value(item, first)
        if dash:
            self._range(item, start, self._value(item, last))

    def _range(self, item: str, start: int, end: int) -> None:
        if end < start:
            self._refuse(item, "runs backwards", self._forwards(start, end))
        if end == start and "/" in item:
            # cronsim reads 5-5/2 as 5/2, and cron reads it as 5.
            self._refuse(item, "steps through one value", f": write {start}, or {start}-{self.high}/…")

    def _forwards(self, start: int, end: int) -> str:
        if self is WEEKDAY and end == 0:
            return f", as SUN is 0: write {start}-7"
        return f": write {start}-{self.high},{self.low}-{end}"

    def _step(self, item: str, base: str, step: str) -> None:
        values = self.high - self.low + 1
        if not step.isdigit():
            self._refuse(item, "must have a whole number after the '/'")
        if int(step) == 0:
            self._refuse(item, "has a step of 0: it must be 1 or more")
        if int(step) > values:
            self._refuse(item, f"has a step of more than {values} {self.plural}")

    def _value(self, item: str, text: str) -> int:
        if text.upper() in self.names:
            return self.names.index(text.upper()) + self.low
        if not (text.isascii() and text.isdigit()):
            self._refuse(item, self._no_value(text))
        if not self.low <= int(text) <= self.high:
            self._refuse(item, f"is out of range: {self.plural} go from {self.low} to {self.high}")
        return int(text)

    def _no_value(self, text: str) -> str:
        for other in (MONTH, WEEKDAY):
            if text.upper() in other.names:
                return f"has {text}, which only the {other.name} field allows: write a value"
        return "is not a number or name" if self.names else "is not a number"

    def _refuse(self, item: str, wrong: str, instead: str | None = None) -> NoReturn:
        remedy = f"; examples: {self.example}" if instead is None else instead
        raise ScheduleInvalid(self.name, f"{self.name} {shown(item)} {wrong}{remedy}")


MINUTE = Field("minute", "minutes", 0, 59, "0, */15 or 0,30")
HOUR = Field("hour", "hours", 0, 23, "9, 8-18 or */4")
DAY_OF_MONTH = Field("day of month", "days", 1, 31, "1, 1-15 or L")
MONTH = Field("month", "months", 1, 12, "1, JAN or 6-8", MONTHS)
WEEKDAY = Field("weekday", "weekdays", 0, 7, "1, MON-FRI or MON#2", WEEKDAYS)
