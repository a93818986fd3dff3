"""/v1/definitions: put, get, list and delete definitions; and whether a worker ticks them."""

from __future__ import annotations

from typing import Any

import flask
import pytest

from rowcall.base import database
from rowcall.definitions.content import SENT
from tests.api.conftest import Call, fields_of, invalid, told
from tests.api.definitions.conftest import NIGHTLY, rows

pytestmark = pytest.mark.usefixtures("example_app")


# Put, get, delete


def test_a_definition_is_made_with_201_and_kept_with_200(call: Call, path: str, name: str) -> None:
    made = call("PUT", path, json=NIGHTLY)
    again = call("PUT", path, json=NIGHTLY)
    changed = call("PUT", path, json={**NIGHTLY, "priority": 5})
    assert [answer.status_code for answer in (made, again, changed)] == [201, 200, 200]
    assert made.headers["Location"] == path
    assert [told(answer)["revision"] for answer in (made, again, changed)] == [1, 1, 2]
    assert again.json == made.json
    assert (told(made)["name"], told(made)["managed_by"]) == (name, "api")
    assert call("GET", path).json == changed.json


def test_an_answer_has_every_field_and_times_with_offset(nightly: dict[str, Any], call: Call, path: str) -> None:
    state = {"id", "name", "revision", "managed_by", "next_run_at", "paused_at", "created_at", "updated_at"}
    assert set(nightly) == {*SENT, *state}
    assert (nightly["catch_up"], nightly["overlap"]) == ("latest", "skip")
    assert (nightly["max_lateness"], nightly["jitter"], nightly["queue"]) == (21600.0, 0.0, None)
    assert nightly["next_run_at"].endswith("+00:00")


def test_what_get_answers_can_be_put_again(nightly: dict[str, Any], call: Call, path: str) -> None:
    assert (call("PUT", path, json=nightly).status_code, call("GET", path).json) == (200, nightly)
    # Read-only fields are ignored, whatever their value.
    answer = call("PUT", path, json={**nightly, "revision": 77, "next_run_at": "never", "paused_at": True})
    assert answer.json == nightly
    edited = told(call("PUT", path, json={**nightly, "schedule": "45 2 * * *"}))
    assert (edited["schedule"], edited["max_lateness"], edited["revision"]) == ("45 2 * * *", 21600.0, 2)


def test_put_replaces_the_whole_content(nightly: dict[str, Any], call: Call, path: str) -> None:
    assert nightly["schedule"] is not None
    replaced = told(call("PUT", path, json={"job_type": "noop"}))
    assert (replaced["schedule"], replaced["payload"], replaced["max_lateness"]) == (None, {}, None)
    assert replaced["next_run_at"] is None


def test_a_deleted_definition_is_not_found_until_it_is_put_again(
    nightly: dict[str, Any], call: Call, path: str
) -> None:
    deleted = call("DELETE", path)
    assert (deleted.status_code, deleted.data) == (204, b"")
    for method, at in (
        *(("GET", path), ("DELETE", path), ("GET", f"{path}/occurrences"), ("GET", f"{path}/preview")),
        *(("POST", f"{path}/{event}") for event in ("pause", "resume", "run-now")),
    ):
        missing = call(method, at)
        assert (missing.status_code, missing.mimetype) == (404, "application/problem+json")
        assert "there is no definition" in told(missing)["detail"]
    back = call("PUT", path, json=NIGHTLY)
    assert (back.status_code, told(back)["revision"]) == (201, nightly["revision"] + 1)


def test_all_definitions_are_listed_by_name(call: Call, name: str) -> None:
    for letter in "ba":
        call("PUT", f"/v1/definitions/{name}.{letter}", json={"job_type": "noop"})
    listed = [one["name"] for one in rows(call("GET", "/v1/definitions"))]
    assert listed == sorted(listed)
    assert {f"{name}.a", f"{name}.b"} <= set(listed)


@pytest.mark.parametrize("at", ["a%00b", "%ff", "A", "x" * 3000, "%F0%9F%98%80", "a%20b", ".."])
def test_what_can_be_no_name_is_not_found(call: Call, at: str) -> None:
    for method, end in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("GET", "/preview")):
        assert call(method, f"/v1/definitions/{at}{end}").status_code == 404


# Refusals


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"job_type": None}, "job_type"),
        ({"job_type": 7}, "job_type"),
        ({"job_type": "nop"}, "job_type"),
        ({"payload": [1]}, "payload"),
        ({"payload": {"day": "{yesterday}"}}, "payload"),
        ({"payload": {"day": "soon"}}, "payload"),
        ({"payload": {}}, "payload"),
        ({"schedule": ""}, "schedule"),
        ({"schedule": "60 * * * *"}, "schedule"),
        ({"schedule": {}}, "schedule"),
        ({"time_zone": "Berlin"}, "time_zone"),
        ({"time_zone": None}, "time_zone"),
        ({"catch_up": "some"}, "catch_up"),
        ({"max_lateness": "soon"}, "max_lateness"),
        ({"max_lateness": [6]}, "max_lateness"),
        ({"max_lateness": -1}, "max_lateness"),
        ({"overlap": 1}, "overlap"),
        ({"jitter": 1e300}, "jitter"),
        ({"missing_time": "after"}, "missing_time"),
        ({"repeated_time": "once"}, "repeated_time"),
        ({"queue": "E-Mail"}, "queue"),
        ({"priority": "1"}, "priority"),
        ({"priority": 10**30}, "priority"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"cron": "* * * * *"}, "cron"),
        ({"name": "another"}, "name"),
        ({"name": None}, "name"),
    ],
    ids=str,
)
def test_a_wrong_field_is_named_and_nothing_kept(call: Call, path: str, wrong: dict[str, Any], field: str) -> None:
    refused = call("PUT", path, json={**NIGHTLY, **wrong})
    assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
    assert fields_of(refused) == {field}
    assert call("GET", path).status_code == 404


def test_everything_that_is_wrong_is_told_in_one_answer(call: Call, path: str) -> None:
    refused = call("PUT", path, json={"schedule": "* *", "time_zone": 1, "jitter": "x", "colour": "red"})
    assert fields_of(refused) == {"job_type", "schedule", "time_zone", "jitter", "colour"}
    assert f"definition '{path.rpartition('/')[2]}', jitter: 'x' is not a duration" in told(refused)["detail"]


@pytest.mark.parametrize("sign", ["\0", "\ud800"], ids=ascii)
def test_what_no_field_can_hold_is_named_too(call: Call, path: str, sign: str) -> None:
    refused = call("PUT", path, json={**NIGHTLY, "payload": {"day": sign}})
    assert list(invalid(refused)) == ["/payload/day"]


@pytest.mark.parametrize(("body", "status"), [(b"[]", 422), (b'"x"', 422), (b"null", 422), (b"{", 400), (b"", 400)])
def test_a_body_must_be_an_object(call: Call, path: str, body: bytes, status: int) -> None:
    refused = call("PUT", path, data=body, content_type="application/json")
    assert (refused.status_code, refused.mimetype) == (status, "application/problem+json")


def test_a_name_that_cannot_be_is_refused_as_a_field(call: Call) -> None:
    refused = call("PUT", "/v1/definitions/Nightly", json=NIGHTLY)
    assert list(invalid(refused)) == ["/name"]
    assert told(refused)["errors"][0]["in"] == "path"


@pytest.mark.parametrize("scope", ["enqueue", "read", "operate", "steer"])
def test_reading_needs_read_steering_operate_and_what_makes_runs_enqueue_too(call: Call, path: str, scope: str) -> None:
    reading = [("GET", "/v1/definitions"), *(("GET", path + end) for end in ("", "/occurrences", "/preview"))]
    steering = [("DELETE", path), *(("POST", f"{path}/{to}") for to in ("pause", "resume"))]
    needs = ((reading, {"read", "steer"}), (steering, {"operate", "steer"}), ([("PUT", path)], {"steer"}))
    for routes, enough in needs:
        for method, at in routes:
            body = {"json": {"job_type": "noop"}} if method == "PUT" else {}
            answer = call(method, at, scope=scope, **body)
            assert (answer.status_code == 403) == (scope not in enough), (method, at, answer.status_code)
            assert answer.status_code in (200, 201, 202, 204, 403, 404)


# Descriptions


def test_openapi_says_what_is_sent_and_what_is_answered(call: Call) -> None:
    described = told(call("GET", "/openapi.json"))["components"]["schemas"]
    wanted, answered = described["SentDefinition"], described["Definition"]
    assert wanted["required"] == ["job_type"]
    assert wanted["properties"]["max_lateness"]["type"] == ["number", "string", "null"]
    assert wanted["properties"]["jitter"]["type"] == ["number", "string"]
    assert wanted["properties"]["catch_up"]["description"].endswith('Default: "latest".')
    assert sorted(answered["required"]) == sorted(answered["properties"]) == sorted(wanted["properties"])
    assert answered["properties"]["max_lateness"]["type"] == ["number", "null"]
    assert answered["properties"]["overlap"]["enum"] == ["allow", "skip"]
    # TypeScript's types would require a field with a default.
    assert not any("default" in field for one in (wanted, answered) for field in one["properties"].values())
    for described_fields in (wanted["properties"], answered["properties"]):
        told_only = {name for name, field in described_fields.items() if field.get("readOnly")}
        assert told_only == set(described_fields) - set(SENT)


# Ticks


@pytest.mark.usefixtures("nightly")
def test_ready_turns_into_degraded_while_no_worker_ticks_what_is_scheduled(app: flask.Flask, module_url: str) -> None:
    client = app.test_client()
    tick_was(module_url, "now()")
    assert client.get("/readyz").json == {"status": "ready"}
    tick_was(module_url, "'2026-01-02T03:04:05Z'")
    degraded = client.get("/readyz")
    # This is no reason to take the API out of service.
    assert degraded.status_code == 200
    assert told(degraded) == {
        "status": "degraded",
        "since": "2026-01-02T03:04:05+00:00",
        "reason": "no worker has ticked the schedules since then: check cron or `rowcall worker run`",
    }


def tick_was(url: str, moment: str) -> None:
    """Set when a worker last ticked."""
    with database.transaction(url) as connection:
        database.fetch_all(connection, f"UPDATE rowcall.schedule_ticks SET ticked_at = {moment}")
