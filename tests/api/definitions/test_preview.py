"""GET /v1/definitions/{name}/preview: the next times, the times up to a given one, and the result of an outage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Call, invalid
from tests.api.definitions.conftest import rows

pytestmark = pytest.mark.usefixtures("example_app")


# Preview


@pytest.fixture
def preview(nightly: dict[str, Any], call: Call, path: str) -> Callable[..., Any]:
    """Return a function that requests a preview of the nightly definition."""
    return lambda **query: call("GET", f"{path}/preview", scope="read", query_string=query)


def test_the_next_times_are_told_by_the_wall_of_the_zone(preview: Callable[..., Any], name: str) -> None:
    assert len(rows(preview())) == 10
    first, second = rows(preview(**{"from": "2026-03-28 12:00", "count": "2"}))
    assert first == {
        "name": name,
        "nominal_at": "2026-03-29T01:00:00+00:00",
        "wall": "Sun 2026-03-29 03:00 CEST",
        "outcome": "enqueued",
        "run_at": "2026-03-29T01:00:00+00:00",
        "note": "02:30 does not exist on 2026-03-29 in Europe/Berlin: runs at 03:00",
    }
    assert (second["wall"], second["note"]) == ("Mon 2026-03-30 02:30 CEST", None)


def test_a_preview_goes_up_to_a_moment_or_through_an_outage(preview: Callable[..., Any]) -> None:
    until = rows(preview(**{"from": "2026-03-28T00:00:00+01:00", "until": "2026-03-30T00:00:00+02:00"}))
    assert [(one["nominal_at"], one["outcome"]) for one in until] == [
        ("2026-03-28T01:30:00+00:00", "enqueued"),
        ("2026-03-29T01:00:00+00:00", "enqueued"),
    ]
    asleep = rows(preview(**{"from": "2026-03-28 00:00", "asleep": "2026-03-29 08:00"}))
    assert [(one["nominal_at"], one["outcome"], one["run_at"]) for one in asleep] == [
        ("2026-03-28T01:30:00+00:00", "missed", None),
        ("2026-03-29T01:00:00+00:00", "enqueued", "2026-03-29T01:00:00+00:00"),
    ]


def test_the_times_of_a_paused_definition_are_skipped(preview: Callable[..., Any], call: Call, path: str) -> None:
    call("POST", f"{path}/pause")
    for query in ({}, {"until": "in 2 days"}, {"asleep": "in 2 days"}):
        assert {(one["outcome"], one["run_at"], one["note"]) for one in rows(preview(**query))} == {
            ("skipped", None, "paused")
        }


def test_a_preview_of_all_the_years_there_are_is_a_page_of_it(preview: Callable[..., Any]) -> None:
    ages = {"from": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"}
    assert len(rows(preview(**ages))) == 1000
    assert len(rows(preview(**{"from": ages["from"], "asleep": ages["until"]}))) == 1000
    assert rows(preview(**{"from": "9999-01-02T00:00:00Z"})) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "NaN"}, "from"),
        ({"from": ""}, "from"),
        ({"from": "0000-01-01"}, "from"),
        ({"from": "99999-01-01"}, "from"),
        ({"from": "0001-01-01T00:00:00+14:00"}, "from"),
        ({"from": "9999-12-31T23:59:59-12:00"}, "from"),
        ({"from": "\0"}, "from"),
        ({"from": "in 999999999999 weeks"}, "from"),
        ({"until": "soon"}, "until"),
        ({"until": "yesterday"}, "until"),
        ({"from": "tomorrow", "asleep": "today"}, "asleep"),
        ({"asleep": "x" * 5000}, "asleep"),
        ({"until": "tomorrow", "asleep": "tomorrow"}, "asleep"),
        ({"count": "0"}, "count"),
        ({"count": "1001"}, "count"),
        ({"count": "9" * 5000}, "count"),
        ({"count": "NaN"}, "count"),
        ({"count": ""}, "count"),
    ],
    ids=str,
)
def test_a_wrong_question_is_named(preview: Callable[..., Any], query: dict[str, str], field: str) -> None:
    refused = preview(**query)
    assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
    assert list(invalid(refused)) == [f"/{field}"]
    assert len(refused.data) < 2000


def test_years_have_four_digits(preview: Callable[..., Any]) -> None:
    [first] = rows(preview(**{"from": "0002-01-01", "count": "1"}))
    assert first["wall"].split()[1].startswith("0002-01-0")
