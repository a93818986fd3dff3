"""Times and durations, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import duration, duration_words, moment

BERLIN = ZoneInfo("Europe/Berlin")
# A Saturday, 09:20 in Berlin.
NOW = datetime(2026, 11, 21, 8, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("now", "2026-11-21T09:20:30+01:00"),
        ("today 09:00", "2026-11-21T09:00:00+01:00"),
        ("today", "2026-11-21T00:00:00+01:00"),
        ("tomorrow", "2026-11-22T00:00:00+01:00"),
        ("Tomorrow  at 9:00", "2026-11-22T09:00:00+01:00"),
        ("yesterday 18:30", "2026-11-20T18:30:00+01:00"),
        ("monday 09:00", "2026-11-23T09:00:00+01:00"),
        ("next Monday 9:00", "2026-11-23T09:00:00+01:00"),
        ("friday", "2026-11-27T00:00:00+01:00"),
        ("saturday 09:21", "2026-11-21T09:21:00+01:00"),
        ("saturday 09:20", "2026-11-28T09:20:00+01:00"),
        ("2026-03-29", "2026-03-29T00:00:00+01:00"),
        ("2026-06-01 12:30", "2026-06-01T12:30:00+02:00"),
        ("2026-06-01T12:30:15.250", "2026-06-01T12:30:15.250000+02:00"),
        ("2026-06-01T12:30Z", "2026-06-01T14:30:00+02:00"),
        ("2026-06-01t12:30z", "2026-06-01T14:30:00+02:00"),
        ("2026-06-01T12:30-07:00", "2026-06-01T21:30:00+02:00"),
        ("2026-03-29 02:30", "2026-03-29T03:00:00+02:00"),
        ("2026-10-25 02:30", "2026-10-25T02:30:00+02:00"),
        ("in 3 hours", "2026-11-21T12:20:30+01:00"),
        ("+90 minutes", "2026-11-21T10:50:30+01:00"),
        ("3 days ago", "2026-11-18T09:20:30+01:00"),
        ("1h30m ago", "2026-11-21T07:50:30+01:00"),
        ("90 minutes", "2026-11-21T10:50:30+01:00"),
        ("10m", "2026-11-21T09:30:30+01:00"),
        # What a query string makes of a + that is not encoded as %2B.
        (" 90 minutes", "2026-11-21T10:50:30+01:00"),
        ("2026-06-01T12:30 07:00", "2026-06-01T07:30:00+02:00"),
        ("2026-06-01 12:30:15.250 07:00", "2026-06-01T07:30:15.250000+02:00"),
    ],
)
def test_a_moment_is_read_in_the_zone(text: str, there: str) -> None:
    read = moment(text, NOW, BERLIN)
    assert read.tzinfo is UTC
    assert read.astimezone(BERLIN).isoformat() == there


def test_a_length_of_time_alone_leads_to_the_past_where_one_is_asked_for() -> None:
    assert moment("10m", NOW, BERLIN, past=True) == moment("10m ago", NOW, BERLIN)
    assert moment("in 10m", NOW, BERLIN, past=True) == NOW + timedelta(minutes=10)


def test_a_weekday_is_never_this_very_moment() -> None:
    assert moment("saturday 9:20", NOW.replace(second=0), BERLIN) == NOW.replace(second=0) + timedelta(days=7)


def test_a_day_is_the_zones_and_not_the_machines() -> None:
    evening = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    assert moment("today 08:00", evening, BERLIN) == datetime(2026, 11, 22, 7, tzinfo=UTC)


def test_hours_from_now_are_real_hours() -> None:
    before = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    assert moment("in 24 hours", before.astimezone(BERLIN), BERLIN) == before + timedelta(hours=24)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "today 25:00",
        "today 9:60",
        "next tomorrow",
        "2026-02-30",
        "in 1 month",
        "in 90",
        "-3 hours",
    ],
)
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ScheduleInvalid, match="'.*' is not a time: write 'now', '2026-03-29 02:30', "):
        moment(text, NOW, BERLIN)


@pytest.mark.parametrize("text", ["in 9999999 days", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"])
def test_a_moment_outside_the_calendar_is_refused_as_such(text: str) -> None:
    with pytest.raises(ScheduleInvalid, match="'.*' is before the year 1 or after the year 9999 in UTC"):
        moment(text, NOW, BERLIN)


WORDS = st.lists(
    st.sampled_from(
        [
            "now",
            "today",
            "next",
            "monday",
            "at",
            "09:00",
            "9:99",
            "in",
            "+",
            "3",
            "days",
            "ago",
            "2026-03-29",
            "9999-12-31",
        ]
    )
).map(" ".join)


@given(st.one_of(st.text(), WORDS), st.sampled_from(["Pacific/Kiritimati", "Pacific/Niue", "Europe/Berlin"]))
@example("9999-12-31T23:59", "Pacific/Niue")
@example("0001-01-01", "Pacific/Kiritimati")
def test_no_text_brings_another_error(text: str, zone: str) -> None:
    try:
        assert moment(text, NOW, ZoneInfo(zone)).tzinfo is UTC
    except ScheduleInvalid as error:
        if error.field is not None:
            raise


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (90, 90),
        (0.5, 0.5),
        ("90", 90),
        ("90s", 90),
        ("15 minutes", 900),
        ("6h", 21_600),
        ("2 days", 172_800),
        ("1h30m", 5_400),
        ("1.5 hours", 5_400),
        ("1 week", 604_800),
        ("2 H 5 Min", 7_500),
        ("0", 0),
        ("3653 days", 315_619_200),
    ],
)
def test_a_duration_is_seconds_or_words(value: str | float, seconds: float) -> None:
    assert duration(value) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", ["", "soon", "5 months", "1h-30m", "h", "1 m s", "-1h", "٣h", True])
def test_what_is_no_duration_is_refused_with_examples(value: str | float) -> None:
    with pytest.raises(ScheduleInvalid, match="'.*' is not a duration: write seconds, '90s', '15 minutes', "):
        duration(value)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        "-5",
        float("nan"),
        float("inf"),
        "3654 days",
        pytest.param(10**5000, id="so many digits"),
        "9" * 5000,
    ],
)
def test_a_duration_below_nothing_or_beyond_ten_years_is_refused(value: str | float) -> None:
    with pytest.raises(ScheduleInvalid, match="is not between 0 and ten years: write seconds"):
        duration(value)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=0.5), "0.5 s"),
        (timedelta(seconds=45), "45 s"),
        (timedelta(hours=2, minutes=5), "2 h 5 min"),
        (timedelta(days=1, seconds=1), "1 day 1 s"),
        (timedelta(days=10, hours=23, minutes=59), "10 days 23 h 59 min"),
    ],
)
def test_a_duration_is_told_in_words(length: timedelta, words: str) -> None:
    assert duration_words(length) == words


@given(st.integers(0, 3653 * 86_400))
def test_what_is_told_can_be_read_again(seconds: int) -> None:
    assert duration(duration_words(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@given(st.one_of(st.text(), st.text("0123456789. hmsdwinutes-"), st.integers(), st.floats()))
def test_no_value_brings_another_error(value: str | float) -> None:
    try:
        assert timedelta(0) <= duration(value) <= timedelta(days=3653)
    except ScheduleInvalid as error:
        if error.field is not None:
            raise
