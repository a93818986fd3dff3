"""/v1/audit: an admin sees who changed what."""

from __future__ import annotations

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.access.audit import SUBJECTS
from tests.api.conftest import Call, There, told


def test_a_change_is_listed_with_its_request_and_what_it_changed(
    call: Call, there: There, actors: dict[str, str]
) -> None:
    path = there.path("/v1/runs/{run_id}")
    call("POST", f"{path}/cancel", "steer", headers={"X-Request-Id": "cancel-1"})
    listed = told(call("GET", f"/v1/audit?subject=run&subject_id={there.parts['run_id']}"))
    assert listed["next"] is None
    [change] = listed["items"]
    assert (change["who"], change["action"], change["request_id"]) == (actors["steer"], "cancel", "cancel-1")
    assert (change["before"]["status"], change["after"]["status"]) == ("queued", "cancelled")


def test_definitions_and_queues_are_named(call: Call, there: There) -> None:
    call("POST", there.path("/v1/definitions/{name}/pause"), "steer")
    call("POST", there.path("/v1/definitions/{name}/resume"), "steer")
    call("POST", "/v1/queues/mail/resume")
    newest = told(call("GET", "/v1/audit?limit=2"))["items"]
    assert [(change["subject"], change["subject_name"]) for change in newest] == [
        ("queue", "mail"),
        ("definition", "nightly"),
    ]


def test_the_list_goes_on_at_its_cursor_with_the_same_filters(call: Call, refused: Call) -> None:
    for _ in range(3):
        call("POST", "/v1/queues/mail/resume")
    seen, cursor = [], ""
    while cursor is not None:
        page = told(call("GET", f"/v1/audit?action=resume&limit=1{cursor and f'&cursor={cursor}'}"))
        seen += [change["id"] for change in page["items"]]
        cursor, last = page["next"], cursor
    assert seen == sorted(seen, reverse=True)
    assert len({*seen}) == len(seen) >= 3
    refused("GET", f"/v1/audit?action=pause&cursor={last}", 422, "cursor")


def test_the_list_is_as_it_is_described(app: flask.Flask, call: Call) -> None:
    described = told(app.test_client().get("/openapi.json"))
    schema = described["paths"]["/v1/audit"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    listed = told(call("GET", "/v1/audit"))
    assert listed["items"]
    OAS31Validator({**schema, "components": described["components"]}).validate(listed)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("subject_id=1", "subject_id"),
        ("subject=run&subject_id=0", "subject_id"),
        ("subject=runs", "subject"),
        ("who=", "who"),
        ("after=yesterday", "after"),
        ("before=9999-12-31T23:59:59-14:00", "before"),
        ("limit=201", "limit"),
        ("reason=x", "reason"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_field(refused: Call, query: str, field: str) -> None:
    refused("GET", f"/v1/audit?{query}", 422, field)


def test_every_kind_of_subject_is_described(app: flask.Flask) -> None:
    parameters = told(app.test_client().get("/openapi.json"))["paths"]["/v1/audit"]["get"]["parameters"]
    [words] = [one["description"] for one in parameters if one["name"] == "subject"]
    assert [subject for subject in SUBJECTS if subject not in words] == []


@pytest.mark.parametrize("scope", ["enqueue", "read", "operate"])
def test_it_needs_the_scope_admin(refused: Call, scope: str) -> None:
    refused("GET", "/v1/audit", 403, scope=scope)
