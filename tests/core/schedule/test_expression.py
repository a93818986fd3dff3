"""Cron expressions: which are accepted, and the error for each of the others."""

from __future__ import annotations

from datetime import datetime

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import Expression, parse

NEW_YEAR = datetime(2026, 1, 1)


def refused(expression: str) -> ScheduleInvalid:
    with pytest.raises(ScheduleInvalid) as error:
        parse(expression)
    return error.value


def test_spaces_of_any_kind_and_number_mean_one() -> None:
    assert parse("  0\t9  * * \n mon-fri ").text == "0 9 * * mon-fri"


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        (" @HOURLY ", "0 * * * *"),
    ],
)
def test_a_name_stands_for_five_fields_in_any_case(name: str, same: str) -> None:
    read = parse(name)
    assert read.text == name.strip().lower()
    assert next(read.after(NEW_YEAR)) == next(parse(same).after(NEW_YEAR))


@pytest.mark.parametrize(
    ("expression", "hours_open"),
    [
        ("* * * * *", True),
        ("0 */2 * * *", True),
        ("0 *,3 * * *", True),
        ("@hourly", True),
        ("* 2 * * *", False),
        ("0 0-23 * * *", False),
        ("@daily", False),
    ],
)
def test_hours_are_open_where_their_field_begins_with_a_star(expression: str, hours_open: bool) -> None:
    assert parse(expression).hours_open is hours_open


@pytest.mark.parametrize(
    ("expression", "field", "sentence"),
    [
        ("0 25 * * *", "hour", "hour '25' is out of range: hours go from 0 to 23; examples: 9, 8-18 or */4"),
        ("60 * * * *", "minute", "minute '60' is out of range: minutes go from 0 to 59; examples: 0, */15 or 0,30"),
        ("0 0 0 * *", "day of month", "day of month '0' is out of range: days go from 1 to 31; examples: 1, 1-15 or L"),
        ("0 0 * 1-13 *", "month", "month '1-13' is out of range: months go from 1 to 12; examples: 1, JAN or 6-8"),
        ("0 0 * * 8", "weekday", "weekday '8' is out of range: weekdays go from 0 to 7; examples: 1, MON-FRI or MON#2"),
        (
            "0 0 * * 9L",
            "weekday",
            "weekday '9L' is out of range: weekdays go from 0 to 7; examples: 1, MON-FRI or MON#2",
        ),
        ("0 nine * * *", "hour", "hour 'nine' is not a number; examples: 9, 8-18 or */4"),
        ("0 0 15W * *", "day of month", "day of month '15W' is not a number; examples: 1, 1-15 or L"),
        ("0 -1 * * *", "hour", "hour '-1' is not a number; examples: 9, 8-18 or */4"),
        ("0 1- * * *", "hour", "hour '1-' is not a number; examples: 9, 8-18 or */4"),
        ("0 0 * * MONDAY", "weekday", "weekday 'MONDAY' is not a number or name; examples: 1, MON-FRI or MON#2"),
        ("0 ٣ * * *", "hour", "hour '٣' is not a number; examples: 9, 8-18 or */4"),
        ("0 0 * * ³#²", "weekday", "weekday '³#²' is not a number or name; examples: 1, MON-FRI or MON#2"),
        ("0 0 * NOV-FEB *", "month", "month 'NOV-FEB' runs backwards: write 11-12,1-2"),
        ("0 22-2 * * *", "hour", "hour '22-2' runs backwards: write 22-23,0-2"),
        ("0 0 * * FRI-SUN", "weekday", "weekday 'FRI-SUN' runs backwards, as SUN is 0: write 5-7"),
        ("*/0 * * * *", "minute", "minute '*/0' has a step of 0: it must be 1 or more; examples: 0, */15 or 0,30"),
        ("*/ * * * *", "minute", "minute '*/' must have a whole number after the '/'; examples: 0, */15 or 0,30"),
        (
            "*/90 * * * *",
            "minute",
            "minute '*/90' has a step of more than 60 minutes; examples: 0, */15 or 0,30",
        ),
        ("5-5/2 * * * *", "minute", "minute '5-5/2' steps through one value: write 5, or 5-59/…"),
        ("1,,2 * * * *", "minute", "minute '1,,2' has an empty item in its list; examples: 0, */15 or 0,30"),
        ("0 0 ? * *", "day of month", "day of month '?' has a '?', which is not supported: write *"),
        (
            "0 0 * mon *",
            "month",
            "month 'mon' has mon, which only the weekday field allows: write a value; examples: 1, JAN or 6-8",
        ),
        (
            "0 0 * * FEB#2",
            "weekday",
            "weekday 'FEB#2' has FEB, which only the month field allows: write a value; examples: 1, MON-FRI or MON#2",
        ),
        ("0 0 * FEB#2 *", "month", "month 'FEB#2' has a '#', which only the weekday field allows, as in MON#2"),
        ("0 0 * * MON#6", "weekday", "weekday 'MON#6' must have a number from 1 to 5 after the '#', as in MON#2"),
        ("0 0 * * MON#", "weekday", "weekday 'MON#' must have a number from 1 to 5 after the '#', as in MON#2"),
        ("0 0 * * L", "weekday", "weekday 'L' is not supported: 5L is the last Friday of the month"),
        ("0 0 * * friL", "weekday", "weekday 'friL' is not supported: 5L is the last Friday of the month"),
        (
            "0 0 L-3 * *",
            "day of month",
            "day of month 'L-3' is not supported: L is the month's last day, LW its last from Monday to Friday",
        ),
        (
            "0 L * * *",
            "hour",
            (
                "hour 'L' has an L, which only the day-of-month and weekday fields allow: write a value; examples:"
                " 9, 8-18 or */4"
            ),
        ),
    ],
)
def test_what_is_wrong_with_one_field_is_said_of_that_field(expression: str, field: str, sentence: str) -> None:
    error = refused(expression)
    assert (error.field, str(error)) == (field, sentence)


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("", "the schedule is empty: a schedule has five fields"),
        ("5", "this has 1 field: a schedule has five fields"),
        ("* * * *", "this has 4 fields: a schedule has five fields"),
        ("0 0 9 * * *", "seconds are not supported, and this has six fields: a schedule has five fields"),
        ("0 0 9 * * * 2026", "this has 7 fields: a schedule has five fields"),
        ("0 0 31 2 *", "'0 0 31 2 *' never occurs: no year has such a day"),
        ("0 0 30,31 FEB *", "'0 0 30,31 FEB *' never occurs"),
        ("0 0 */30 2 FRI#5", "'0 0 */30 2 FRI#5' never occurs"),
        ("@reboot", "'@reboot' is not supported: a schedule cannot depend on when a machine boots"),
        ("@every 5m", "'@every 5m' is not a schedule: use one of @yearly, @annually, @monthly, @weekly, @daily"),
        ("0 " * 200, "a schedule of 400 characters is too long: at most 200 are allowed"),
    ],
)
def test_what_is_wrong_with_the_whole_is_said_of_no_field(expression: str, sentence: str) -> None:
    error = refused(expression)
    assert error.field is None
    assert str(error).startswith(sentence)


def test_a_long_field_is_not_repeated_whole() -> None:
    assert len(str(refused("x" * 180 + " * * * *"))) < 100


@pytest.mark.parametrize("expression", ["*/60 * * * *", "0 */24 * * *", "0 0 */31 * *", "0 0 * */12 *", "0 0 * * */8"])
def test_a_step_may_be_as_large_as_its_field(expression: str) -> None:
    assert parse(expression).text == expression


def test_a_day_that_only_some_years_have_is_a_schedule() -> None:
    assert list(zip(range(2), parse("0 0 * 2 MON#5").after(NEW_YEAR), strict=False)) == [
        (0, datetime(2044, 2, 29)),
        (1, datetime(2072, 2, 29)),
    ]


PIECES = st.one_of(
    st.sampled_from("0159*,-/#LW?"), st.sampled_from(["07", "31", "MON", "SUN", "FEB", "JUL", "jan", "LW", "5L", "1-5"])
)
FIELD = st.one_of(st.just("*"), st.lists(PIECES, min_size=1, max_size=4).map("".join))
NEARLY = st.one_of(st.tuples(FIELD, FIELD, FIELD, FIELD, FIELD).map(" ".join), st.lists(FIELD).map(" ".join))

# What cronsim accepts and Rowcall does not, because its meaning would not be the intended one.
STRICTER = ("steps through one value", "has a step larger", "is not supported", "never occurs")


@given(st.one_of(st.text(), NEARLY, st.text("0123456789*,-/#LW?@ \0MONabc²\u0131ß", max_size=30)))
@example("0 0 * * MON#²")
@example("*/² * * * *")
@example("0 0 * * fr\u0131")
@example("9" * 199)
def test_no_text_brings_another_error_than_its_refusal(text: str) -> None:
    try:
        read: Expression | None = parse(text)
    except ScheduleInvalid:
        read = None
    assert read is None or next(read.after(NEW_YEAR)) > NEW_YEAR


@given(st.tuples(FIELD, FIELD, FIELD, FIELD, FIELD).map(" ".join))
def test_what_cronsim_reads_is_read_unless_it_misleads(text: str) -> None:
    try:
        CronSim(text, NEW_YEAR)
    except CronSimError:
        refused(text)
    else:
        try:
            parse(text)
        except ScheduleInvalid as error:
            if not any(reason in str(error) for reason in STRICTER):
                raise
