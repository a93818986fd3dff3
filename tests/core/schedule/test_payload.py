"""Payloads with placeholders for the nominal time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import names_time, rendered

BERLIN = ZoneInfo("Europe/Berlin")
# Monday, 30 November in UTC, but already 1 December in Berlin.
NOMINAL = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{date}", "2026-12-01"),
        ("{date-1}", "2026-11-30"),
        ("{date+7}", "2026-12-08"),
        ("{date-0400}", "2025-10-27"),
        ("{time}", "2026-12-01T00:30:00+01:00"),
        ("{week}", "2026-W49"),
        ("{week-1}", "2026-W48"),
        ("{week+5}", "2027-W01"),
        ("{month}", "2026-12"),
        ("{month-1}", "2026-11"),
        ("{month+1}", "2027-01"),
        ("{month-12}", "2025-12"),
        ("sales-{date-1}.csv", "sales-2026-11-30.csv"),
        ("{date-7}/{date-1}", "2026-11-24/2026-11-30"),
        ("{{date}}", "{date}"),
        ("{{{date}}}", "{2026-12-01}"),
        ("{{}} }} {{", "{} } {"),
        ("no time", "no time"),
        ("", ""),
    ],
)
def test_a_placeholder_is_read_where_the_schedule_is(text: str, written: str) -> None:
    assert rendered({"value": text}, NOMINAL, BERLIN) == {"value": written}


def test_the_year_of_a_week_is_the_one_it_belongs_to() -> None:
    assert rendered({"week": "{week}"}, datetime(2027, 1, 1, 12, tzinfo=UTC), BERLIN) == {"week": "2026-W53"}


def test_it_is_read_at_any_depth_and_keys_and_other_values_are_left_alone() -> None:
    payload = {"{date}": {"days": ["{date-1}", {"until": "{date}"}, 7, None, True, 1.5]}, "none": [], "empty": {}}
    assert rendered(payload, NOMINAL, BERLIN) == {
        "{date}": {"days": ["2026-11-30", {"until": "2026-12-01"}, 7, None, True, 1.5]},
        "none": [],
        "empty": {},
    }
    assert payload["{date}"] == {"days": ["{date-1}", {"until": "{date}"}, 7, None, True, 1.5]}


@pytest.mark.parametrize(
    ("payload", "names"),
    [
        ({"day": "{date}"}, True),
        ({"a": [{"b": "until {week+1}"}]}, True),
        ({"day": "{{date}}"}, False),
        ({"{date}": "x"}, False),
        ({"a": 1, "b": ["x", None]}, False),
        ({}, False),
    ],
)
def test_a_payload_tells_whether_it_names_the_time(payload: dict[str, Any], names: bool) -> None:
    assert names_time(payload) is names


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ({"day": "{dat}"}, "payload.day has '{dat}', which is not a placeholder: {date}, {date-1}, {date+7}, {time}, "),
        ({"a": [{"b": "x"}, {"b": "{Date}"}]}, "payload.a[1].b has '{Date}', which is not a placeholder"),
        ({"a": "{date - 1}"}, "payload.a has '{date - 1}', which is not a placeholder"),
        ({"a": "{date+٣}"}, "payload.a has '{date+٣}', which is not a placeholder"),
        ({"a": "{date+10000}"}, "payload.a has '{date+10000}', which is not a placeholder"),
        ({"a": "{time+1}"}, "payload.a has '{time+1}', which is not a placeholder"),
        ({"a": "{}"}, "payload.a has '{}', which is not a placeholder"),
        ({"a": "{date"}, "payload.a has a single '{': {date}, {date-1}"),
        ({"a": "date}"}, "payload.a has a single '}': {date}, {date-1}"),
    ],
)
def test_what_is_no_placeholder_is_refused_by_its_path(payload: dict[str, Any], sentence: str) -> None:
    for use in (lambda: rendered(payload, NOMINAL, BERLIN), lambda: names_time(payload)):
        with pytest.raises(ScheduleInvalid) as error:
            use()
        assert error.value.field == "payload"
        assert str(error.value).startswith(sentence)
        assert str(error.value).endswith("and {{ and }} are braces")


@pytest.mark.parametrize("text", ["{date-9999}", "{week-9999}", "{month-9999}"])
def test_a_date_before_all_years_is_refused_and_not_an_error(text: str) -> None:
    with pytest.raises(
        ScheduleInvalid, match="payload.a has '.*', which for 0020-01-01 is not between the years 1 and 9999"
    ):
        rendered({"a": text}, datetime(20, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))


@given(st.text("{}date+-1 week", max_size=20), st.datetimes(timezones=st.just(UTC)))
def test_no_text_and_no_time_bring_another_error(text: str, nominal: datetime) -> None:
    try:
        rendered({"a": [text, "{date-400}", "{month+9999}", "{week}"]}, nominal, ZoneInfo("UTC"))
    except ScheduleInvalid as error:
        if error.field != "payload":
            raise


@given(st.text())
def test_any_text_can_be_said_with_doubled_braces(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert rendered({"a": doubled}, NOMINAL, BERLIN) == {"a": text}
    assert not names_time({"a": doubled})
