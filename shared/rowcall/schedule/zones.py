"""Time zones by name, and conversions between instants and local times."""

from __future__ import annotations

import difflib
import functools
import zoneinfo
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule.fields import shown

LONGEST_CHANGE = timedelta(hours=26)
"""No clock change is longer.  The longest were whole days, when a country moved across the date line."""

SECOND = timedelta(seconds=1)

# Some machines list these names with the zones; they have a different meaning on each machine, or none.
NO_PLACES = {"Factory", "localtime", "posixrules"}


def zone_named(name: str) -> ZoneInfo:
    """Return the IANA time zone with this name; raise ScheduleInvalid with a similar name if there is none."""
    if name not in _all_names():
        near = _nearest(name)
        hint = f" (did you mean {near}?)" if near else ""
        raise ScheduleInvalid(
            "time_zone", f"there is no time zone {shown(name)}{hint}: write one such as Europe/Berlin"
        )
    return ZoneInfo(name)


@functools.cache
def _all_names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - NO_PLACES)


def _nearest(name: str) -> str | None:
    """Return the most similar place, with or without its continent; abbreviations are too similar to each other."""
    places = {known.lower(): known for known in sorted(_all_names()) if "/" in known and not known.startswith("Etc/")}
    cities = {place.rsplit("/", 1)[-1]: known for place, known in places.items()}
    wanted = name[:40].strip().lower()
    for spellings in (places, cities):
        for near in difflib.get_close_matches(wanted, spellings, n=1, cutoff=0.8):
            return spellings[near]
    return None


def wall_at(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time in this zone."""
    return instant.astimezone(zone).replace(tzinfo=None)


def earliest_wall_after(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return a local time that is not later than any local time after this instant, even if an hour will repeat."""
    offsets = [time.astimezone(zone).utcoffset() for time in (instant, instant + LONGEST_CHANGE)]
    return instant.astimezone(UTC).replace(tzinfo=None) + min(offset for offset in offsets if offset is not None)


def instant_of(wall: datetime, zone: ZoneInfo, fold: int = 0) -> datetime | None:
    """Return the first (fold 0) or last (fold 1) instant with this local time; None if there is none."""
    instant = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    return instant if wall_at(instant, zone) == wall else None


def first_valid_after(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant after a local time that does not exist."""
    # With the offset from after the change, the time is an instant before it, and vice versa.
    before, after = (wall.replace(tzinfo=zone, fold=fold, microsecond=0).astimezone(UTC) for fold in (1, 0))
    while after - before > SECOND:
        middle = before + (after - before) // (2 * SECOND) * SECOND
        if wall_at(middle, zone) > wall:
            after = middle
        else:
            before = middle
    return after
