"""Parse the five fields of a cron expression; cronsim evaluates them on local times without a zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from cronsim import CronSim, CronSimError

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule.fields import DAY_OF_MONTH, HOUR, MINUTE, MONTH, WEEKDAY, shown

LONGEST = 200
"""In characters.  A list of all 60 minutes has 169 characters."""

FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY)

NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

FIVE_FIELDS = "a schedule has five fields (minute, hour, day of month, month, weekday), such as '30 2 * * MON-FRI'"

# Any 50 years contain every possible date on every possible weekday.
ANY_YEAR = datetime(2000, 1, 1)

LAST_YEAR = 9999
"""The last year of Python's dates.  It is not used, so that no zone's offset can lead past its end."""


@dataclass(frozen=True)
class Expression:
    """A valid cron expression: `text` as it was written, and its five fields as `cron`."""

    text: str
    cron: str

    @property
    def hours_open(self) -> bool:
        """Return whether the hour field begins with `*`, that is, names no hour."""
        return self.cron.split()[1].startswith("*")

    def after(self, wall: datetime) -> Iterator[datetime]:
        """Yield the local times that match, strictly later than this one, in order, up to the year 9999."""
        try:
            for time in CronSim(self.cron, wall):
                if time.year >= LAST_YEAR:
                    return
                yield time
        except OverflowError:
            return


def parse(expression: str) -> Expression:
    """Parse five fields or one of the @names; raise ScheduleInvalid with the field, the reason and an example."""
    if len(expression) > LONGEST:
        raise ScheduleInvalid(
            None, f"a schedule of {len(expression)} characters is too long: at most {LONGEST} are allowed"
        )
    text = " ".join(expression.split())
    if text.startswith("@"):
        return Expression(text.lower(), _named(text))
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise ScheduleInvalid(None, _wrong_number(len(parts)))
    for field, part in zip(FIELDS, parts, strict=True):
        field.check(part)
    _check_that_it_comes(text)
    return Expression(text, text)


def _named(text: str) -> str:
    if text.lower() == "@reboot":
        raise ScheduleInvalid(
            None,
            "'@reboot' is not supported: a schedule cannot depend on when a machine boots; use @daily or five fields",
        )
    try:
        return NAMES[text.lower()]
    except KeyError:
        raise ScheduleInvalid(None, f"{shown(text)} is not a schedule: use one of {', '.join(NAMES)}") from None


def _wrong_number(number: int) -> str:
    if number == 0:
        return f"the schedule is empty: {FIVE_FIELDS}"
    if number == len(FIELDS) + 1:
        return f"seconds are not supported, and this has six fields: {FIVE_FIELDS}"
    return f"this has {number} field{'' if number == 1 else 's'}: {FIVE_FIELDS}"


def _check_that_it_comes(text: str) -> None:
    """Refuse dates that never occur.  cronsim refuses some, such as 31 February; a search finds the others."""
    try:
        comes = next(CronSim(text, ANY_YEAR), None) is not None
    except CronSimError:
        comes = False
    if not comes:
        raise ScheduleInvalid(
            None, f"{shown(text)} never occurs: no year has such a day; '0 0 L 2 *' is the last day of February"
        )
