"""The content of a definition: the values and the default of each field, and how errors are reported."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base.errors import DefinitionInvalid
from rowcall.definitions import Content, as_sent, checked, in_words
from rowcall.definitions.content import SENT
from rowcall.schedule import CatchUp, Overlap
from tests.definitions.checking import CATALOGUE, HUGE, content, refusals


def test_a_definition_needs_nothing_but_its_job_type() -> None:
    assert content() == Content("noop")
    assert as_sent(content()) == {
        "job_type": "noop",
        "payload": {},
        "schedule": None,
        "time_zone": "UTC",
        "catch_up": "latest",
        "max_lateness": None,
        "overlap": "skip",
        "jitter": 0.0,
        "queue": None,
        "priority": 0,
        "max_attempts": None,
        "ping_url": None,
    }


def test_every_field_that_is_sent_is_kept() -> None:
    given = {
        "job_type": "cleanup_nightly",
        "payload": {"day": "{date-1}"},
        "schedule": "17 3 * * *",
        "time_zone": "Europe/Berlin",
        "catch_up": "skip",
        "max_lateness": "6h",
        "overlap": "allow",
        "jitter": 90,
        "queue": "nights",
        "priority": -7,
        "max_attempts": 3,
        "ping_url": "https://hc-ping.com/0b5c1f7a",
    }
    assert set(given) == set(SENT)
    kept = content(**given)
    assert as_sent(kept) == {**given, "max_lateness": 21600.0, "jitter": 90.0}
    assert (kept.catch_up, kept.overlap) == (CatchUp.SKIP, Overlap.ALLOW)


def test_what_is_told_can_be_sent_again() -> None:
    kept = content(schedule="@daily", max_lateness="90 minutes", jitter="1.5s", catch_up="all")
    assert checked("nightly", as_sent(kept), CATALOGUE) == kept


def test_people_read_durations_with_their_units() -> None:
    words = in_words(as_sent(content(max_lateness="1h30m", jitter=90)))
    assert (words["max_lateness"], words["jitter"], words["priority"]) == ("1 h 30 min", "1 min 30 s", 0)
    assert in_words(as_sent(content()))["max_lateness"] is None


@pytest.mark.parametrize(
    ("given", "overlap"),
    [
        ({}, Overlap.SKIP),
        ({"catch_up": "skip"}, Overlap.SKIP),
        ({"catch_up": "all"}, Overlap.ALLOW),
        ({"catch_up": "all", "overlap": None}, Overlap.ALLOW),
        ({"catch_up": "all", "overlap": "skip"}, Overlap.SKIP),
    ],
)
def test_runs_may_overlap_by_themselves_only_where_all_missed_times_are_caught_up(
    given: dict[str, Any], overlap: Overlap
) -> None:
    assert content(**given).overlap is overlap


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("job_type", None, "is null and must have a value or be left out"),
        ("job_type", 7, "is 7 and must be text"),
        ("job_type", "nop", "there is no job type 'nop'; known here: build_sales_report, "),
        ("payload", None, "is null and must have a value or be left out"),
        ("payload", [1], "is [1] and must be a table of fields"),
        ("payload", "{date}", "is '{date}' and must be a table of fields"),
        ("schedule", 5, "is 5 and must be text"),
        ("schedule", "", "the schedule is empty: a schedule has five fields"),
        ("schedule", "* * * *", "this has 4 fields"),
        ("schedule", "0 25 * * *", "hour '25' is out of range"),
        ("schedule", "0 0 31 2 *", "never occurs"),
        ("schedule", "@nightly", "'@nightly' is not a schedule: use one of @yearly"),
        ("schedule", "0 0 * * \0", "is not a number or name"),
        ("time_zone", None, "is null and must have a value or be left out"),
        ("time_zone", "", "there is no time zone ''"),
        ("time_zone", "Berlin", "there is no time zone 'Berlin' (did you mean Europe/Berlin?)"),
        ("time_zone", "../../etc/passwd", "there is no time zone"),
        ("catch_up", "lastest", "is 'lastest' and must be one of: skip, latest, all"),
        ("catch_up", None, "is null and must have a value or be left out"),
        ("catch_up", [], "is [] and must be one of: skip, latest, all"),
        ("max_lateness", "soon", "'soon' is not a duration: write seconds, '90s'"),
        ("max_lateness", "11 years", "is not a duration"),
        ("max_lateness", "-1", "is not between 0 and ten years"),
        ("max_lateness", True, "'True' is not a duration"),
        ("max_lateness", float("nan"), "is not between 0 and ten years"),
        ("max_lateness", {"hours": 6}, "is not a duration"),
        ("overlap", "never", "is 'never' and must be one of: allow, skip"),
        ("jitter", None, "is null and must have a value or be left out"),
        ("jitter", [5], "'[5]' is not a duration"),
        ("jitter", "4000 days", "is not between 0 and ten years"),
        pytest.param("jitter", HUGE, "a number this large is not between 0 and ten years", id="jitter-huge"),
        ("queue", "E-Mail", "must be lower-case words such as mail"),
        ("queue", "", "must be lower-case words such as mail"),
        ("queue", 1, "is 1 and must be text"),
        ("priority", "high", "is 'high' and must be a whole number"),
        ("priority", 1.5, "is 1.5 and must be a whole number"),
        ("priority", True, "is True and must be a whole number"),
        ("priority", float("inf"), "is inf and must be a whole number"),
        ("priority", 32768, "must be a whole number from -32768 (first) to 32767 (last)"),
        pytest.param("priority", HUGE, "must be a whole number from -32768 (first)", id="priority-huge"),
        ("max_attempts", 0, "is 0 and must be a whole number from 1 to 1000"),
        pytest.param("max_attempts", HUGE, "is too large and must be a whole number from 1", id="max_attempts-huge"),
        ("max_attempts", "x" * 100, f"is '{'x' * 39}…' and must be a whole number"),
    ],
)
def test_a_value_that_cannot_be_used_is_told_with_what_can(field: str, value: Any, sentence: str) -> None:
    refused = refusals(**{field: value})
    assert list(refused) == [field]
    assert sentence in str(refused[field])


def test_a_definition_without_a_job_type_is_told_so_and_nothing_besides() -> None:
    with pytest.raises(DefinitionInvalid) as refused:
        checked("nightly", {"payload": {"day": "{date}"}}, CATALOGUE)
    assert refused.value.fields == {"job_type": "is missing: name a job type, such as noop"}


def test_a_field_that_there_is_not_is_told_with_those_that_there_are() -> None:
    for name in ("cron", "name", "next_run_at", 7):
        with pytest.raises(DefinitionInvalid) as refused:
            checked("nightly", {"job_type": "noop", name: 1}, CATALOGUE)  # type: ignore[dict-item]  # as YAML can have it
        assert refused.value.fields == {str(name): f"is not a field of a definition; the fields are {', '.join(SENT)}"}


@pytest.mark.parametrize("name", ["a", "nightly", "0", "send_weekly.report-2", "x" * 100])
def test_names_are_lower_case_letters_digits_and_a_few_signs(name: str) -> None:
    assert checked(name, {"job_type": "noop"}, CATALOGUE)


@pytest.mark.parametrize("name", ["", "Nightly", "-a", ".a", "a b", "a/b", "ä", "a\n", "a\0", "x" * 101])
def test_other_names_are_refused(name: str) -> None:
    assert "must begin with a lower-case letter or digit" in str(refusals(name)["name"])


def test_everything_that_is_wrong_is_told_at_once() -> None:
    refused = refusals(
        name="Nightly",
        payload={"day": "{tomorrow}"},
        schedule="* * *",
        time_zone="Mars/Base",
        catch_up="some",
        max_lateness="soon",
        queue="E-Mail",
        priority=10**6,
        max_attempts=0,
        colour="red",
    )
    assert set(refused) == {
        *("name", "payload", "schedule", "time_zone", "catch_up", "max_lateness", "queue", "priority", "max_attempts"),
        "colour",
    }


def test_what_is_known_of_a_payload_is_not_hidden_by_an_unknown_type() -> None:
    assert set(refusals(job_type="nop", payload=[], schedule="* *")) == {"job_type", "payload", "schedule"}
