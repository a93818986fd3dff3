"""`fields`: a run with only the fields that a request names."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall_api.schemas.runs import RunSchema
from tests.api.conftest import INVALID, Call, There, told

LISTED = "/v1/runs?status=queued&job_type=noop"


def test_a_list_has_only_the_named_fields_and_the_id(call: Call, there: There) -> None:
    page = told(call("GET", f"{LISTED}&fields=status,queue&count=true"))
    assert page["items"] == [{"id": there.parts["run_id"], "status": "queued", "queue": "default"}]
    assert {*page} == {"items", "next", "count"}


def test_a_large_field_is_read_because_it_is_named(call: Call, there: There) -> None:
    [item] = told(call("GET", f"{LISTED}&fields=payload&fields=allowed_events"))["items"]
    assert item == {
        "id": there.parts["run_id"],
        "payload": {"user_id": 1},
        "allowed_events": ["cancel", "run now", "reschedule"],
    }


def test_a_field_to_include_that_the_named_ones_leave_out_is_refused(call: Call, refused: Call, there: There) -> None:
    answer = told(refused("GET", f"{LISTED}&fields=id,status&include=payload,result", 422))
    [error] = answer["errors"]
    assert (answer["type"], error["in"], error["pointer"]) == (INVALID, "query", "/include")
    assert error["detail"] == "`fields` names all fields of the response: add payload, result to it"
    [item] = told(call("GET", f"{LISTED}&fields=payload&include=payload"))["items"]
    assert item == {"id": there.parts["run_id"], "payload": {"user_id": 1}}


def test_one_run_has_nothing_to_include(refused: Call, there: There) -> None:
    answer = told(refused("GET", there.path("/v1/runs/{run_id}?fields=id&include=payload"), 422))
    assert [error["pointer"] for error in answer["errors"]] == ["/include"]


def test_one_run_has_only_the_named_fields_and_its_etag_is_that_of_the_run(call: Call, there: There) -> None:
    whole, sparse = (call("GET", there.path("/v1/runs/{run_id}") + query) for query in ("", "?fields=status"))
    assert told(sparse) == {"id": there.parts["run_id"], "status": "queued"}
    assert told(whole).keys() == RunSchema().fields.keys()
    assert sparse.headers["ETag"] == whole.headers["ETag"]
    same = {"If-None-Match": whole.headers["ETag"]}
    assert call("GET", there.path("/v1/runs/{run_id}?fields=status"), headers=same).status_code == 304


@pytest.mark.parametrize("path", [LISTED + "&", "/v1/runs/{run_id}?"])
@pytest.mark.parametrize("wrong", ["colour", "status,colour", ""])
def test_a_field_that_no_run_has_is_refused_with_those_there_are(
    refused: Call, there: There, path: str, wrong: str
) -> None:
    answer = told(refused("GET", there.path(f"{path}fields={wrong}"), 422))
    [error] = answer["errors"]
    assert (answer["type"], error["in"], error["pointer"].split("/")[1]) == (INVALID, "query", "fields")
    assert "status" in error["detail"]
    assert "allowed_events" in error["detail"]


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/runs/{run_id}"])
@pytest.mark.parametrize("query", ["", "?fields=status"])
def test_both_forms_are_as_they_are_described(
    app: flask.Flask, call: Call, there: There, path: str, query: str
) -> None:
    described: dict[str, Any] = told(app.test_client().get("/openapi.json"))
    schema = described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = told(call("GET", there.path(path) + query))
    OAS31Validator({**schema, "components": described["components"]}).validate(answer)
