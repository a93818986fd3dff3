"""/v1/series: points for charts, as the document describes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.base import database
from rowcall.queue.series.record import begin_counting
from tests.api.conftest import Call, told
from tests.support.counted import counted

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
RANGE = {"from": "2026-01-05T12:00:00Z", "to": "2026-01-05T12:03:00Z"}


@pytest.fixture(scope="module", autouse=True)
def _counts(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        counted(connection, NOON, succeeded=3, dead=1, waited=(6.0,), ran=(0.001, 6.0))
        counted(connection, NOON, job_type="other", succeeded=1)
        begin_counting(connection, "9.9.9")


def shown(call: Call, **query: str) -> dict[str, Any]:
    return told(call("GET", f"/v1/series?{urlencode(query)}", scope="read"))


def test_a_point_has_counts_and_percentiles(call: Call) -> None:
    series = shown(call, **RANGE)
    assert [point["at"][11:16] for point in series["points"]] == ["12:00", "12:01", "12:02"]
    first, second, _ = series["points"]
    assert (first["succeeded"], first["dead"], first["failed"]) == (4, 1, 0)
    assert first["waiting"] == {"p50": 7.5, "p95": 9.75, "p99": 9.95}
    assert second["running"] == {"p50": None, "p95": None, "p99": None}
    assert (series["from"], series["to"]) == ("2026-01-05T12:00:00+00:00", "2026-01-05T12:03:00+00:00")


def test_a_type_limits_the_counts(call: Call) -> None:
    assert shown(call, **RANGE, job_type="other")["points"][0]["succeeded"] == 1
    assert shown(call, **RANGE, job_type="none")["points"][0]["succeeded"] == 0


def test_a_longer_step_has_fewer_points(call: Call) -> None:
    assert [len(shown(call, **RANGE, step=step)["points"]) for step in ("1m", "5m", "1h", "1d")] == [3, 1, 1, 1]


def test_the_default_is_the_last_hour_with_its_deploys(call: Call) -> None:
    series = shown(call)
    assert len(series["points"]) in (60, 61)
    assert [deploy["version"] for deploy in series["deploys"]] == ["9.9.9"]


def test_the_series_is_as_it_is_described(app: flask.Flask, call: Call) -> None:
    described = told(app.test_client().get("/openapi.json"))
    schema = described["paths"]["/v1/series"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    validator = OAS31Validator({**schema, "components": described["components"]})
    validator.validate(shown(call, **RANGE))
    validator.validate(shown(call))


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-01-05"}, "to"),
        ({"from": "2026-01-05T12:00:00Z", "to": "2026-01-05T12:00:00Z"}, "from"),
        ({"from": "9998-01-01T00:00:00Z"}, "from"),
        ({"step": "2m"}, "step"),
        ({**RANGE, "to": "2026-01-09T12:00:00Z"}, "step"),
        ({"from": "2000-01-01T00:00:00Z", "to": "9998-12-31T23:59:59Z", "step": "1d"}, "step"),
        ({"job_type": ""}, "job_type"),
        ({"job_type": "\0"}, "job_type"),
        ({"at": "1"}, "at"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_field(refused: Call, query: dict[str, str], field: str) -> None:
    refused("GET", f"/v1/series?{urlencode(query)}", 422, field)


@pytest.mark.parametrize("scope", ["enqueue", "operate"])
def test_it_needs_the_scope_read(refused: Call, scope: str) -> None:
    refused("GET", "/v1/series", 403, scope=scope)
