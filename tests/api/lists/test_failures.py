"""/v1/failures: errors by job type, as the document describes them."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.base import database
from rowcall.queue.failures.count import count_failures
from tests.api.conftest import Call, told
from tests.support.failures import failed


@pytest.fixture(scope="module", autouse=True)
def newest(module_url: str) -> int:
    """Insert failures of two types, some of them counted; return the newest example."""
    with database.transaction(module_url) as connection:
        failed(connection, "user 1 is unknown")
        failed(connection, error_type="KeyError", age="2 hours", job_type="'other'", queue="'mail'")
        count_failures(connection)
        return failed(connection, "user 2 is unknown", age="1 second")


def listed(call: Call, query: str = "") -> dict[str, Any]:
    return told(call("GET", f"/v1/failures{query}", scope="read"))


def test_each_error_has_its_counts_and_its_newest_example(call: Call, newest: int) -> None:
    found = listed(call)
    assert [item["job_type"] for item in found["items"]] == ["noop", "other"]
    unknown = found["items"][0]
    assert (unknown["error"], unknown["error_type"], unknown["run_id"]) == ("user * is unknown", "ValueError", newest)
    assert [unknown[name] for name in ("last_hour", "last_day", "last_week", "retrying")] == [2, 2, 2, 2]
    assert found["complete"] is True


@pytest.mark.parametrize(
    ("query", "types"),
    [("?job_type=noop", ["noop"]), ("?queue=mail", ["other"]), ("?limit=1", ["noop"]), ("?job_type=none", [])],
)
def test_a_type_a_queue_and_a_number_limit_the_list(call: Call, query: str, types: list[str]) -> None:
    assert [item["job_type"] for item in listed(call, query)["items"]] == types


def test_the_list_is_as_it_is_described(app: flask.Flask, call: Call) -> None:
    described = told(app.test_client().get("/openapi.json"))
    schema = described["paths"]["/v1/failures"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    OAS31Validator({**schema, "components": described["components"]}).validate(listed(call))


@pytest.mark.parametrize(
    ("query", "field"), [("job_type=", "job_type"), ("queue=%00", "queue"), ("limit=201", "limit"), ("at=1", "at")]
)
def test_what_cannot_be_asked_is_a_wrong_field(refused: Call, query: str, field: str) -> None:
    refused("GET", f"/v1/failures?{query}", 422, field)


@pytest.mark.parametrize("scope", ["enqueue", "operate"])
def test_it_needs_the_scope_read(refused: Call, scope: str) -> None:
    refused("GET", "/v1/failures", 403, scope=scope)
