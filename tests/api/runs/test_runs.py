"""/v1/runs: enqueue a run, once per key, and read it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import flask
import pytest

from rowcall.access import api_keys
from rowcall.base import database
from tests.api.conftest import MAKER, Call, told

NOOP = {"job_type": "noop", "payload": {"hello": "world"}}


def count(url: str) -> int:
    with database.transaction(url) as connection:
        found: int = database.fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs")
    return found


def test_a_run_is_accepted_committed_and_found_where_the_answer_says(call: Call, actors: dict[str, str]) -> None:
    accepted = call("POST", "/v1/runs", scope="enqueue", json=NOOP)
    assert accepted.status_code == 202
    found = call("GET", accepted.headers["Location"], scope="read")
    assert found.status_code == 200
    assert found.json == accepted.json
    assert tuple(told(found)[name] for name in ("status", "payload", "created_by")) == (
        "queued",
        {"hello": "world"},
        actors["enqueue"],
    )


def test_who_created_a_run_is_found_by_the_keys_name_also_when_the_key_was_replaced_or_by_the_key_alone(
    call: Call, app: flask.Flask, module_url: str
) -> None:
    with database.transaction(module_url) as connection:
        old = api_keys.create_key(connection, "billing", ["enqueue"], MAKER)
        new = api_keys.create_key(connection, "billing", ["enqueue"], MAKER, grace=timedelta(hours=1))
        api_keys.create_key(connection, "billing two", ["enqueue"], MAKER)
    for key in (old, new):
        headers = {"Authorization": f"Bearer {key}"}
        assert app.test_client().post("/v1/runs", json=NOOP, headers=headers).status_code == 202
    found = [
        [run["created_by"] for run in told(call("GET", "/v1/runs", query_string={"created_by": who}))["items"]]
        for who in ("api:billing", f"api:billing ({old.split('_')[1]})", "billing", "api:billing two")
    ]
    first, second = (f"api:billing ({key.split('_')[1]})" for key in (old, new))
    assert found == [[second, first], [first], [], []]


def test_times_are_iso_8601_with_offset_in_and_out(call: Call) -> None:
    run = told(call("POST", "/v1/runs", json={**NOOP, "run_at": "2030-03-31T09:00:00+02:00"}))
    assert datetime.fromisoformat(run["run_at"]) == datetime.fromisoformat("2030-03-31T07:00:00+00:00")


def test_a_plus_that_a_query_made_a_space_is_understood(call: Call) -> None:
    run = told(call("POST", "/v1/runs", json={**NOOP, "run_at": "2090-03-31T09:00:00+02:00"}))
    for time, found in (("2090-03-31T09:00:00+02:00", True), ("2090-03-31T09:00:00+01:00", False)):
        listed = told(call("GET", f"/v1/runs?run_after={time}"))["items"]
        assert (run["id"] in [one["id"] for one in listed]) is found


def test_the_same_key_and_body_again_is_the_same_run(call: Call) -> None:
    first = call("POST", "/v1/runs", json=NOOP, headers={"Idempotency-Key": "once"})
    again = call("POST", "/v1/runs", json=NOOP, headers={"Idempotency-Key": "once"})
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]


def test_the_same_key_with_another_body_is_refused(call: Call, module_url: str) -> None:
    call("POST", "/v1/runs", json=NOOP, headers={"Idempotency-Key": "mine"})
    before = count(module_url)
    refused = call("POST", "/v1/runs", json={**NOOP, "payload": {}}, headers={"Idempotency-Key": "mine"})
    assert (refused.status_code, told(refused)["type"]) == (422, "urn:rowcall:problem:idempotency-key-reused")
    assert "errors" not in told(refused)  # as the description of 422 says
    assert count(module_url) == before


def test_a_pruned_run_is_still_shown_and_still_answers_for_its_key(call: Call, module_url: str) -> None:
    first = call("POST", "/v1/runs", json=NOOP, headers={"Idempotency-Key": "kept"})
    with database.transaction(module_url) as connection:
        database.fetch_all(
            connection,
            "UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now(), payload = '{}', pruned_at = now()"
            " WHERE idempotency_key = 'kept'",
        )
    shown = told(call("GET", first.headers["Location"]))
    assert (shown["status"], shown["payload"], bool(shown["pruned_at"])) == ("succeeded", {}, True)
    again = call("POST", "/v1/runs", json=NOOP, headers={"Idempotency-Key": "kept"})
    assert (again.status_code, told(again)["id"]) == (200, shown["id"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"payload": {}}, "job_type"),
        ({**NOOP, "job_type": 7}, "job_type"),
        ({**NOOP, "payload": [1]}, "payload"),
        ({**NOOP, "payload": {"a": "\0"}}, "payload"),
        ({**NOOP, "payload": {"a": "x" * 70_000}}, "payload"),
        ({**NOOP, "run_at": "tomorrow"}, "run_at"),
        ({**NOOP, "run_at": "2030-01-01T00:00:00"}, "run_at"),
        ({**NOOP, "queue": "No Such"}, "queue"),
        ({**NOOP, "priority": 10**30}, "priority"),
        ({**NOOP, "priority": "1"}, "priority"),
        ({**NOOP, "max_attempts": 0}, "max_attempts"),
        ({**NOOP, "colour": "red"}, "colour"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_added(
    call: Call, module_url: str, body: dict[str, Any], field: str
) -> None:
    before = count(module_url)
    refused = call("POST", "/v1/runs", json=body)
    assert refused.status_code == 422
    assert refused.mimetype == "application/problem+json"
    assert field in refused.get_data(as_text=True)
    assert count(module_url) == before


def test_an_unknown_type_is_refused_with_the_known_ones(call: Call) -> None:
    refused = call("POST", "/v1/runs", json={"job_type": "nop"})
    assert [error["code"] for error in told(refused)["errors"]] == ["job-type-unknown"]
    assert "noop" in told(refused)["detail"]


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_too_short_or_too_long_is_refused(call: Call, key: str) -> None:
    assert call("POST", "/v1/runs", json=NOOP, headers={"Idempotency-Key": key}).status_code == 422


@pytest.mark.parametrize("run_id", ["999999999", "9223372036854775808", "1" * 100])
def test_a_run_that_is_not_there_is_a_404_problem(call: Call, run_id: str) -> None:
    missing = call("GET", f"/v1/runs/{run_id}")
    assert (missing.status_code, missing.mimetype) == (404, "application/problem+json")
