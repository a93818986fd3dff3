"""The nominal times of a schedule: the instants at which its expression matches the local time in its zone.

An expression whose hour field begins with `*` follows elapsed time: the local time is checked at every real minute, so
a jump forward adds nothing, and a repeated hour runs again.  All other expressions name their hours, and a named time
runs once a day even if clocks change: after the jump if it was skipped, and the first time if it occurs twice.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule.expression import LAST_YEAR, Expression, parse
from rowcall.schedule.zones import SECOND, earliest_wall_after, first_valid_after, instant_of, wall_at, zone_named

# No nominal time is earlier; no zone's offset leads from here to before Python's first date.
BEGINNING = datetime(2, 1, 1, tzinfo=UTC)

# No nominal time is later: the year 9998 has ended in every zone.
END = datetime(LAST_YEAR, 1, 2, tzinfo=UTC)


@dataclass(frozen=True)
class Times:
    """The nominal times of one schedule, as aware instants in UTC."""

    expression: Expression
    zone: ZoneInfo

    @classmethod
    def of(cls, schedule: str, time_zone: str) -> Times:
        """Parse a schedule and its zone; raise ScheduleInvalid, which says which of the two is wrong."""
        try:
            expression = parse(schedule)
        except ScheduleInvalid as error:
            raise ScheduleInvalid("schedule", str(error)) from None
        return cls(expression, zone_named(time_zone))

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield all later times in strictly increasing order, up to the end of the year 9998."""
        if instant.tzinfo is None:
            raise ValueError(f"{instant!r} needs an offset, such as datetime.now(UTC)")
        latest = max(instant.astimezone(UTC), BEGINNING)
        if latest.year >= LAST_YEAR:
            return
        for time in self._comings(self.expression.after(earliest_wall_after(latest, self.zone))):
            if time > latest:
                latest = time
                yield time

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first time after this instant, or None."""
        return next(self.after(instant), None)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the times later than start, up to and including end."""
        return itertools.takewhile(lambda time: time <= end, self.after(start))

    def last_between(self, start: datetime, end: datetime) -> datetime | None:
        """Return the last time between two instants; search from the end, because a year of minutes may precede it."""
        end, span = min(end, END), timedelta(hours=1)
        while True:
            begin = max(start, end - span)
            last = deque(self.between(begin, end), maxlen=1)
            if last or begin == start:
                return last[0] if last else None
            span *= 2

    def note(self, instant: datetime) -> str | None:
        """Return a note if this time replaces a local time that does not exist, or if its local time occurs twice."""
        return self._note_of_missing(instant) or self._note_of_repeated(instant)

    def _comings(self, walls: Iterator[datetime]) -> Iterator[datetime]:
        """Yield the instants of ordered local times; the instants may be out of order or repeat."""
        if not self.expression.hours_open:
            return self._instants(walls, fold=0)
        # Ordered local times are ordered instants, both at their first and at their last occurrence.
        first, last = itertools.tee(walls)
        return heapq.merge(self._instants(first, fold=0), self._instants(last, fold=1))

    def _instants(self, walls: Iterable[datetime], fold: int) -> Iterator[datetime]:
        for wall in walls:
            instant = instant_of(wall, self.zone, fold)
            if instant is not None:
                yield instant
            elif not self.expression.hours_open:
                yield first_valid_after(wall, self.zone)

    def _note_of_missing(self, instant: datetime) -> str | None:
        wall = wall_at(instant, self.zone)
        # What the clock would show without the change.
        due = wall_at(instant - SECOND, self.zone) + SECOND
        if self.expression.hours_open:
            return None
        missing = list(itertools.takewhile(lambda time: time < wall, self.expression.after(due - SECOND)))
        if not missing:
            return None
        first, last = missing[0], missing[-1]
        which = f"{first:%H:%M} does" if first == last else f"{first:%H:%M} to {last:%H:%M} do"
        runs = f"{wall:%H:%M}" if wall.date() == first.date() else f"{wall:%H:%M} on {wall.date()}"
        return f"{which} not exist on {first.date()} in {self.zone.key}: runs at {runs}"

    def _note_of_repeated(self, instant: datetime) -> str | None:
        wall = wall_at(instant, self.zone)
        first, last = (instant_of(wall, self.zone, fold) for fold in (0, 1))
        if first == last:
            return None
        coming = "first" if instant == first else "second"
        return f"{wall:%H:%M} occurs twice on {wall.date()} in {self.zone.key}: this is the {coming}"
