"""A schedule in words: right for the common forms, and the expression itself for all others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import parse, schedule_words

WORDS = {
    "17 3 * * *": "every day at 03:17",
    "@daily": "every day at 00:00",
    "@hourly": "every hour at minute 0",
    "@weekly": "on Sundays at 00:00",
    "@monthly": "on day 1 of each month at 00:00",
    "@yearly": "on day 1 of January at 00:00",
    "0,30 9 * * *": "every day at 09:00 and 09:30",
    "0 18,6 * * *": "every day at 06:00 and 18:00",
    "30 2 * * MON-FRI": "Monday to Friday at 02:30",
    "0 9 * * mon,3,7": "on Mondays, Wednesdays and Sundays at 09:00",
    "0 9 * * MON#2": "on the second Monday of each month at 09:00",
    "0 9 * * 5L": "on the last Friday of each month at 09:00",
    "0 9 * 1,JUL 5L": "on the last Friday of January and July at 09:00",
    "0 9 * 6-8 *": "every day in June to August at 09:00",
    "0 9 * 6-8 1": "on Mondays in June to August at 09:00",
    "0 0 L * *": "on the last day of each month at 00:00",
    "0 0 LW * *": "on the last day from Monday to Friday of each month at 00:00",
    "0 0 1,15 * *": "on days 1 and 15 of each month at 00:00",
    "0 0 1-7 12 *": "on days 1 to 7 of December at 00:00",
    "* * * * *": "every minute",
    "*/15 * * * *": "every 15 minutes",
    "*/15 8-18 * * 1-5": "every 15 minutes from 08:00 to 18:45, Monday to Friday",
    "*/20 5 * * *": "every 20 minutes from 05:00 to 05:40",
    "5 * * * *": "every hour at minute 5",
    "5 */4 * * *": "every 4 hours at minute 5",
    "0 8-18 * * *": "every hour from 08:00 to 18:00",
}

# Uneven steps, long lists, and a day of the month together with a weekday, for which cron has a rule of its own.
AS_IT_IS = (
    "*/7 * * * *",
    "0 */5 * * *",
    "*/5 */2 * * *",
    "0,15,30,45 8,9 * * *",
    "5-10 3 * * *",
    "0 8-18/2 * * *",
    "0 8,10-12 * * *",
    "0 0 13 * FRI",
    "0 0 1,L * *",
    "0 0 */2 * *",
    "0 0 * * 5L,1",
    "0 0 * * 0-7",
    "0 0 * * MON#1,MON#3",
    "0 0 * 1-5/2 *",
)


@pytest.mark.parametrize(("expression", "words"), WORDS.items())
def test_a_common_form_has_words(expression: str, words: str) -> None:
    assert schedule_words(parse(expression), "Europe/Berlin") == f"{words}, Europe/Berlin"


@pytest.mark.parametrize("expression", AS_IT_IS)
def test_any_other_form_is_shown_as_it_is(expression: str) -> None:
    assert schedule_words(parse(expression), "UTC") == f"{expression}, UTC"


def field(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    pair = st.tuples(number, number).map("-".join)
    step = st.tuples(st.just("*") | pair, st.integers(1, high).map(str)).map("/".join)
    item = st.just("*") | number | pair | step | st.sampled_from(["1", *special])
    return st.lists(item, min_size=1, max_size=3).map(",".join)


@given(st.tuples(field(0, 59), field(0, 23), field(1, 31, "L", "LW"), field(1, 12, "JAN"), field(0, 7, "5L", "MON#2")))
def test_every_valid_expression_has_a_text(fields: tuple[str, ...]) -> None:
    expression = " ".join(fields)
    try:
        parsed = parse(expression)
    except ScheduleInvalid:
        return
    assert schedule_words(parsed, "UTC").endswith(", UTC")
