"""A schedule's times, compared with an oracle that walks through every minute."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.schedule import Times
from tests.core.schedule.oracle import Oracle

BERLIN, NEW_YORK, APIA = "Europe/Berlin", "America/New_York", "Pacific/Apia"
LORD_HOWE, TROLL, BEIRUT = "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Beirut"

# Expression, zone, first local day of the window, its number of days, and how many times it contains.
TABLE = [
    # Ordinary days: lists, ranges, steps, names.
    ("* * * * *", "UTC", "2026-06-01", 2, 2880),
    ("*/7 * * * *", BERLIN, "2026-06-01", 3, 648),
    ("0,30 8-18 * * MON-FRI", BERLIN, "2026-06-01", 8, 132),
    ("5/20 9 * * *", "Asia/Kathmandu", "2026-06-01", 5, 15),
    ("10-40/15 */6 * * *", "Asia/Kathmandu", "2026-06-01", 3, 36),
    ("15 10,12,14-16 * JUN-AUG *", NEW_YORK, "2026-05-28", 8, 20),
    ("0 12 * jan,jul mon", BERLIN, "2026-06-20", 30, 2),
    ("59 23 31 12 *", "Asia/Kathmandu", "2026-12-25", 14, 1),
    ("0 0 1 */3 *", "Asia/Kolkata", "2026-01-01", 200, 3),
    ("30 4 1,15 * *", "Pacific/Chatham", "2026-09-10", 30, 2),
    ("0 0 * * 7", "UTC", "2026-06-01", 15, 2),
    ("0 0 * * 0", "UTC", "2026-06-01", 15, 2),
    ("0 0 * * 5-7", "UTC", "2026-06-01", 15, 6),
    ("0 0 * * */2", "UTC", "2026-06-01", 15, 8),
    ("0 0 * * 1/2", "UTC", "2026-06-01", 15, 9),
    ("0 9 * * TUE,THU", "America/St_Johns", "2026-03-01", 15, 4),
    # Day of month and weekday: either must match, unless one of them begins with a star.
    ("0 6 13 * FRI", BERLIN, "2026-02-01", 60, 8),
    ("0 6 1-7 * MON", BERLIN, "2026-06-01", 30, 11),
    ("0 6 */2 * MON", BERLIN, "2026-06-01", 30, 3),
    ("0 6 10-20 * */3", BERLIN, "2026-06-01", 30, 5),
    ("0 6 *,5 * WED", BERLIN, "2026-06-01", 30, 4),
    # The last day, the last working day, the last Friday, the second Tuesday.
    ("0 8 L * *", BERLIN, "2026-01-15", 120, 4),
    ("0 8 L 2 *", BERLIN, "2028-02-20", 20, 1),
    ("0 8 lw * *", BERLIN, "2026-01-15", 150, 5),
    ("0 8 1,L * *", NEW_YORK, "2026-02-20", 50, 4),
    ("0 8 * * 5l", BERLIN, "2026-01-15", 120, 4),
    ("0 8 * * 0L", BERLIN, "2026-03-01", 31, 1),
    ("0 8 * * 7L", BERLIN, "2026-03-01", 31, 1),
    ("0 8 * * TUE#2", NEW_YORK, "2026-01-15", 120, 4),
    ("0 8 * * SUN#5", BERLIN, "2026-01-15", 120, 1),
    ("0 8 15 * MON#1,FRI#3", BERLIN, "2026-01-15", 60, 7),
    ("30 2 * 3 7L", BERLIN, "2026-03-01", 31, 1),
    # 29 February.
    ("0 0 29 2 *", BERLIN, "2028-02-20", 20, 1),
    ("0 0 29 2 *", BERLIN, "2026-01-01", 720, 0),
    ("0 0 29 2 *", "UTC", "2024-01-01", 1600, 2),
    ("0 12 28-29 FEB *", NEW_YORK, "2028-02-20", 20, 2),
    ("0 0 31 * *", "UTC", "2026-01-15", 150, 3),
    # Berlin's clocks go forward on 2026-03-29, from 02:00 to 03:00.
    ("30 2 * * *", BERLIN, "2026-03-27", 5, 5),
    ("0 2 * * *", BERLIN, "2026-03-27", 5, 5),
    ("0 3 * * *", BERLIN, "2026-03-27", 5, 5),
    ("0 2,3 * * *", BERLIN, "2026-03-28", 2, 3),
    ("*/10 2 * * *", BERLIN, "2026-03-28", 2, 7),
    ("* 1-3 * * *", BERLIN, "2026-03-28", 2, 300),
    ("30 2 29 3 *", BERLIN, "2026-03-01", 40, 1),
    ("45 2 * * SUN", BERLIN, "2026-03-20", 20, 3),
    ("0 * * * *", BERLIN, "2026-03-28", 3, 71),
    ("*/15 * * * *", BERLIN, "2026-03-28", 2, 188),
    ("0 */2 * * *", BERLIN, "2026-03-28", 3, 35),
    ("30 */2 * * *", BERLIN, "2026-03-28", 3, 35),
    # And back on 2026-10-25, from 03:00 to 02:00.
    ("30 2 * * *", BERLIN, "2026-10-23", 5, 5),
    ("0 2 * * *", BERLIN, "2026-10-23", 5, 5),
    ("59 2 * * *", BERLIN, "2026-10-23", 5, 5),
    ("0 3 * * *", BERLIN, "2026-10-23", 5, 5),
    ("*/20 1-3 * * *", BERLIN, "2026-10-24", 3, 27),
    ("* 2 * * *", BERLIN, "2026-10-24", 2, 120),
    ("0 * * * *", BERLIN, "2026-10-24", 3, 73),
    ("* * * * *", BERLIN, "2026-10-24", 2, 2940),
    ("0 */2 * * *", BERLIN, "2026-10-24", 3, 37),
    # Other zones: changes of half an hour, two hours and a whole day, at midnight, around Ramadan, in winter.
    ("30 2 * * *", NEW_YORK, "2026-03-06", 5, 5),
    ("30 1 * * *", NEW_YORK, "2026-10-30", 5, 5),
    ("0 1 * * SUN", NEW_YORK, "2026-10-30", 5, 1),
    ("0 2 * * *", LORD_HOWE, "2026-10-01", 6, 6),
    ("*/10 2 * * *", LORD_HOWE, "2026-10-02", 3, 15),
    ("45 1 * * *", LORD_HOWE, "2026-04-02", 5, 5),
    ("*/10 1-2 * * *", LORD_HOWE, "2026-04-03", 3, 36),
    ("30 * * * *", LORD_HOWE, "2026-04-03", 3, 73),
    ("0 1,2 * * *", TROLL, "2026-03-27", 4, 7),
    ("30 0-3 * * *", TROLL, "2026-10-23", 5, 20),
    ("*/30 * * * *", TROLL, "2026-10-23", 4, 196),
    ("0 9 * * *", APIA, "2011-12-27", 6, 6),
    ("0 0 * * *", APIA, "2011-12-27", 6, 5),
    ("0 9 30 12 *", APIA, "2011-12-20", 20, 1),
    ("0 * * * *", APIA, "2011-12-28", 4, 72),
    ("0 0 * * *", BEIRUT, "2025-03-28", 5, 5),
    ("@daily", BEIRUT, "2025-10-23", 6, 6),
    ("30 23 * * *", BEIRUT, "2025-10-23", 5, 5),
    ("0 0 * * SUN", "America/Sao_Paulo", "2018-10-30", 14, 2),
    ("30 0 4 11 *", "America/Sao_Paulo", "2018-10-30", 14, 1),
    ("30 23 * * SAT", "America/Sao_Paulo", "2019-02-10", 14, 2),
    ("30 2 * * *", "Africa/Casablanca", "2025-02-20", 6, 6),
    ("30 2 * * *", "Africa/Casablanca", "2025-04-03", 6, 6),
    ("30 1 * * *", "Europe/Dublin", "2025-03-28", 5, 5),
    ("30 1 * * *", "Europe/Dublin", "2025-10-24", 5, 5),
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def before_midnight(day: str, days: int, zone: str) -> datetime:
    """Return the last minute before a day, so that the window contains its midnight."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)) + timedelta(days=days)
    return midnight.astimezone(UTC) - timedelta(minutes=1)


def oracle(expression: str) -> Oracle:
    return Oracle({"@daily": "0 0 * * *"}.get(expression, expression))


@pytest.mark.parametrize(("expression", "zone", "day", "days", "count"), TABLE)
def test_the_times_are_those_a_walk_through_every_minute_finds(
    expression: str, zone: str, day: str, days: int, count: int
) -> None:
    start, end = before_midnight(day, 0, zone), before_midnight(day, days, zone)
    expected = oracle(expression).times(ZoneInfo(zone), start, end)
    times = Times.of(expression, zone)
    assert list(times.between(start, end)) == expected
    assert len(expected) == count
    # The next time is found from each of them, and from between two of them.
    for earlier, later in itertools.pairwise(expected[:200]):
        assert times.next_after(earlier) == later
        assert times.next_after(later - timedelta(seconds=1)) == later


# Days with clock changes, small and large, and one ordinary day.
CHANGES = [
    (BERLIN, "2026-03-29"),
    (BERLIN, "2026-10-25"),
    (BERLIN, "2026-06-15"),
    (NEW_YORK, "2026-03-08"),
    (NEW_YORK, "2026-11-01"),
    (LORD_HOWE, "2026-04-04"),
    (LORD_HOWE, "2026-10-03"),
    (TROLL, "2026-03-29"),
    (TROLL, "2026-10-25"),
    (APIA, "2011-12-30"),
    (BEIRUT, "2025-03-29"),
    (BEIRUT, "2025-10-25"),
    ("Africa/Casablanca", "2025-02-23"),
    ("America/Sao_Paulo", "2019-02-16"),
    ("Pacific/Kwajalein", "1969-09-30"),
    ("Asia/Kathmandu", "1985-12-31"),
]


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    """Draw items of one field in all forms, and lists of them."""
    value = st.integers(low, high)
    span = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    wide = st.integers(low, high - 1).map(lambda first: f"{first}-{high}")
    stepped = st.tuples(st.one_of(st.just("*"), value.map(str), wide), st.integers(1, high - low)).map(
        lambda pair: f"{pair[0]}/{pair[1]}"
    )
    item = st.one_of(value.map(str), span, stepped)
    return st.one_of(st.just("*"), item, st.lists(item, min_size=2, max_size=3).map(",".join))


# A day that starts with * and a weekday must both match, but */14 matches no day in the fourth week: that is refused.
def may_never_come(parts: tuple[str, ...]) -> bool:
    return parts[2].startswith("*/") and parts[4] in {"SUN#4", "0L"}


PARTS = st.tuples(
    fields(0, 59),
    st.one_of(fields(0, 23), fields(0, 3)),
    st.one_of(st.just("*"), st.just("L"), fields(1, 28)),
    st.one_of(st.just("*"), st.just("2-12"), fields(1, 12)),
    st.one_of(st.just("*"), fields(0, 7), st.sampled_from(["SUN#4", "0L", "SAT,SUN", "MON-FRI"])),
)
EXPRESSIONS = PARTS.filter(lambda parts: not may_never_come(parts)).map(" ".join)


@given(EXPRESSIONS, st.sampled_from(CHANGES), st.integers(-36 * 60, 36 * 60))
def test_any_expression_around_any_change_of_clocks_is_what_the_walk_finds(
    expression: str, change: tuple[str, str], minutes: int
) -> None:
    zone, day = change
    start = utc(day) + timedelta(minutes=minutes)
    end = start + timedelta(days=2)
    expected = oracle(expression).times(ZoneInfo(zone), start, end)
    times = Times.of(expression, zone)
    assert list(times.between(start, end)) == expected
    assert times.last_between(start, end) == (expected[-1] if expected else None)
    assert all(times.note(time) is None or zone in str(times.note(time)) for time in expected[:100])
