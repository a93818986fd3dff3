"""A schedule's times when clocks change, case by case, and what is reported about them."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import Times

BERLIN, APIA = "Europe/Berlin", "Pacific/Apia"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(times: Times, start: str, count: int) -> list[str]:
    return [
        time.astimezone(times.zone).isoformat(timespec="minutes")
        for time in itertools.islice(times.after(utc(start)), count)
    ]


def test_a_time_that_does_not_exist_runs_at_the_first_valid_moment_after() -> None:
    assert local(Times.of("30 2 * * *", BERLIN), "2026-03-28", 3) == [
        "2026-03-28T02:30+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_a_time_that_comes_twice_runs_once_at_its_first_coming() -> None:
    assert local(Times.of("30 2 * * *", BERLIN), "2026-10-24", 3) == [
        "2026-10-24T02:30+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_a_lost_day_runs_at_the_first_moment_of_the_next() -> None:
    assert local(Times.of("0 9 * * *", APIA), "2011-12-29", 3) == [
        "2011-12-29T09:00-10:00",
        "2011-12-31T00:00+14:00",
        "2011-12-31T09:00+14:00",
    ]


def test_an_hourly_schedule_runs_every_real_hour() -> None:
    assert local(Times.of("@hourly", BERLIN), "2026-03-29", 3) == [
        "2026-03-29T03:00+02:00",
        "2026-03-29T04:00+02:00",
        "2026-03-29T05:00+02:00",
    ]
    assert local(Times.of("@hourly", BERLIN), "2026-10-24T23:00", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
    ]


def test_once_the_second_coming_has_begun_the_first_is_not_made_up_for() -> None:
    assert local(Times.of("30 2 * * *", BERLIN), "2026-10-25T01:10", 1) == ["2026-10-26T02:30+01:00"]


def test_a_day_that_comes_twice_runs_once_where_the_hour_is_named_and_twice_by_elapsed_time() -> None:
    # Kwajalein crossed the date line: 30 September was repeated from 01:00.
    zone, start = "Pacific/Kwajalein", "1969-09-29T15:00"
    assert local(Times.of("30 2 * * *", zone), start, 2) == ["1969-09-30T02:30+11:00", "1969-10-01T02:30-12:00"]
    twice = ["1969-09-30T04:30+11:00", "1969-09-30T04:30-12:00"]
    assert [time for time in local(Times.of("30 */4 * * *", zone), start, 20) if "-30T04" in time] == twice


def test_an_offset_of_half_a_minute_is_kept() -> None:
    assert Times.of("30 12 * * *", "Africa/Monrovia").next_after(utc("1971-06-01")) == utc("1971-06-01T13:14:30")


def test_instants_may_be_in_any_zone_and_have_fractions() -> None:
    times = Times.of("0 9 * * *", BERLIN)
    assert times.next_after(datetime(2026, 6, 1, 9, 0, tzinfo=ZoneInfo(BERLIN))) == utc("2026-06-02T07:00")
    assert times.next_after(utc("2026-06-01T06:59:59.999999")) == utc("2026-06-01T07:00")
    assert times.next_after(utc("2026-06-01T07:00:00.000001")) == utc("2026-06-02T07:00")


def test_an_instant_without_an_offset_is_nobodys() -> None:
    with pytest.raises(ValueError, match="needs an offset"):
        Times.of("@daily", "UTC").next_after(datetime(2026, 1, 1))


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Niue"])
def test_the_times_end_with_the_years_and_never_in_an_error(zone: str) -> None:
    last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    for expression in ("* * * * *", "0 0 29 2 *", "@yearly"):
        times = Times.of(expression, zone)
        assert times.next_after(last) is None
        assert len(list(itertools.islice(times.after(utc("9998-12-31T10:00")), 2000))) < 2000
        assert times.next_after(first) is not None


@pytest.mark.parametrize(
    ("expression", "instant", "note"),
    [
        ("30 2 * * *", "2026-03-28T01:30", None),
        ("30 2 * * *", "2026-03-29T01:00", "02:30 does not exist on 2026-03-29 in Europe/Berlin: runs at 03:00"),
        (
            "*/20 2 * * *",
            "2026-03-29T01:00",
            "02:00 to 02:40 do not exist on 2026-03-29 in Europe/Berlin: runs at 03:00",
        ),
        ("0 3 * * *", "2026-03-29T01:00", None),
        ("0 * * * *", "2026-03-29T01:00", None),
        ("30 2 * * *", "2026-10-25T00:30", "02:30 occurs twice on 2026-10-25 in Europe/Berlin: this is the first"),
        (
            "30 */2 * * *",
            "2026-10-25T01:30",
            "02:30 occurs twice on 2026-10-25 in Europe/Berlin: this is the second",
        ),
        ("0 3 * * *", "2026-10-25T02:00", None),
    ],
)
def test_a_note_tells_what_a_change_of_clocks_does_to_a_time(expression: str, instant: str, note: str | None) -> None:
    assert Times.of(expression, BERLIN).note(utc(instant)) == note


def test_a_note_names_the_day_when_the_run_is_on_another() -> None:
    assert Times.of("0 9 * * *", APIA).note(utc("2011-12-30T10:00")) == (
        "09:00 does not exist on 2011-12-30 in Pacific/Apia: runs at 00:00 on 2011-12-31"
    )


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        (("0 25 * * *", BERLIN), "schedule", "hour '25' is out of range"),
        (("@daily", "Europe/Berln"), "time_zone", "no time zone 'Europe/Berln' .did you mean Europe/Berlin.."),
        (("@daily", "europe/berlin"), "time_zone", "did you mean Europe/Berlin"),
        (("@daily", "new york"), "time_zone", "did you mean America/New_York"),
        (("@daily", "CEST"), "time_zone", "no time zone 'CEST': write one such as Europe/Berlin"),
        (("@daily", "GMT+2"), "time_zone", "no time zone 'GMT.2': write one such as Europe/Berlin"),
        (("@daily", ""), "time_zone", "no time zone '': write one such as Europe/Berlin"),
        (("@daily", "Europe"), "time_zone", "no time zone 'Europe'"),
        (("@daily", "../Europe/Berlin"), "time_zone", "no time zone"),
        (("@daily", "/usr/share/zoneinfo/UTC"), "time_zone", "no time zone"),
        (("@daily", "localtime"), "time_zone", "no time zone"),
        (("@daily", "\0"), "time_zone", "no time zone"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_field(values: tuple[str, ...], field: str, sentence: str) -> None:
    with pytest.raises(ScheduleInvalid, match=sentence) as error:
        Times.of(*values)
    assert error.value.field == field


@given(st.one_of(st.text(), st.text("./~Europ_+-1 \0")))
def test_no_name_of_a_zone_brings_another_error(name: str) -> None:
    with pytest.raises(ScheduleInvalid, match="there is no time zone"):
        Times.of("@daily", name)
