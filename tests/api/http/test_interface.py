"""/openapi.json: generated from the routes, valid, the same every time, and correct for the responses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from rowcall.access.api_keys import SCOPES
from rowcall_api.document.config import CONFIG
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.openapi import Interface
from tests.api.conftest import Call, told
from tests.support.processes import LIMIT_SECONDS

PRINT = """
import sys
from rowcall_api.app import create_app
sys.stdout.write(create_app(sys.argv[1]).test_client().get("/openapi.json").get_data(as_text=True))
"""


@pytest.fixture(scope="module")
def described(app: flask.Flask) -> dict[str, Any]:
    """Return the document as served without a key."""
    return told(app.test_client().get("/openapi.json"))


def operations(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in described["paths"].values():
        yield from (operation for method, operation in path.items() if method != "parameters")


def refusals(described: dict[str, Any], operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the operation's responses other than success, with their references resolved."""
    answers = {status: answer for status, answer in operation["responses"].items() if int(status) >= 400}
    shared = described["components"]["responses"]
    return {
        status: shared[answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer
        for status, answer in answers.items()
    }


def test_it_is_valid_openapi_3_1(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(described).iter_errors()) == []


def test_it_is_the_same_in_every_process(described: dict[str, Any], module_url: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PRINT, module_url],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    assert json.dumps(json.loads(printed.stdout)) == json.dumps(described)


def test_it_says_what_it_is_and_where(described: dict[str, Any]) -> None:
    assert described["info"]["version"] == CONFIG["API_VERSION"]
    assert described["info"]["license"]["identifier"] == "Apache-2.0"
    assert described["servers"] == [{"url": "/"}]
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_every_operation_has_a_name_of_its_own_a_sentence_a_tag_and_a_scope(described: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in described["tags"] if tag["description"]}
    names = [operation["operationId"] for operation in operations(described)]
    assert len(set(names)) == len(names)
    assert "enqueueRun" in names
    for operation in operations(described):
        scopes = operation["security"][0]["key"]
        assert set(scopes) <= {*SCOPES}
        needed = [f"a key with the scope `{scope}`" for scope in scopes] or ["any valid key"]
        assert operation["description"].endswith(f"Needs {needed[0]}.")
        assert operation["summary"]
        assert set(operation["tags"]) <= tags


def show_anybody() -> dict[str, str]:
    """Return a response; the view has no scope."""
    return {}


def test_a_route_that_asks_for_no_key_cannot_be_registered() -> None:
    open_door = BodyBlueprint("open", __name__, url_prefix="/v1/open")
    open_door.get("")(open_door.response(200)(show_anybody))
    app = flask.Flask("open")
    app.config.update(CONFIG)
    with pytest.raises(AssertionError, match="names no scope"):
        Interface(app).register_blueprint(open_door)


def test_every_refusal_is_described_as_a_problem_with_its_headers(described: dict[str, Any]) -> None:
    for operation in operations(described):
        found = refusals(described, operation)
        assert set(found) >= {"401", "406", "413", "422", "429", "503"}, operation["operationId"]
        assert ("403" in found) == (operation["security"] != [{"key": []}])
        assert ("requestBody" in operation) == ({"400", "415"} <= set(found))
        for status, answer in found.items():
            schemas = {kind: content["schema"]["$ref"] for kind, content in answer["content"].items()}
            assert schemas == {"application/problem+json": "#/components/schemas/Problem"}, (operation, status)
            assert ("Retry-After" in answer["headers"]) == (status in {"429", "503"})
        assert all("X-Request-Id" in answer.get("headers", ()) for answer in found.values())


def test_what_a_path_names_may_not_be_there_and_what_is_steered_may_refuse(described: dict[str, Any]) -> None:
    assert "404" in described["paths"]["/v1/runs/{run_id}"]["get"]["responses"]
    assert "404" not in described["paths"]["/v1/definitions"]["get"]["responses"]
    assert "409" in described["paths"]["/v1/runs/{run_id}/retry"]["post"]["responses"]
    assert "409" in described["paths"]["/v1/keys"]["post"]["responses"]
    assert "409" in described["paths"]["/v1/queues/{name}/settings"]["delete"]["responses"]
    for path in ("/v1/definitions/{name}/pause", "/v1/queues/{name}/pause", "/v1/runs"):
        assert "409" not in described["paths"][path]["post"]["responses"]


def test_no_parameter_can_be_null(described: dict[str, Any]) -> None:
    for operation in operations(described):
        for parameter in operation.get("parameters", ()):
            assert "null" not in parameter["schema"].get("type", ())
            assert None not in parameter["schema"].get("enum", ())
            assert parameter["schema"].get("default", "") is not None


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"json": {"job_type": "noop"}}, 202),
        ({"data": b"{", "content_type": "application/json"}, 400),
        ({"json": {"job_type": "noop"}, "scope": "read"}, 403),
        ({"json": {"job_type": "noop"}, "headers": {"Authorization": "Bearer none"}}, 401),
        ({"json": {"job_type": "noop"}, "headers": {"Accept": "text/html"}}, 406),
        ({"data": b"x" * 300_000, "content_type": "application/json"}, 413),
        ({"data": b"{}", "content_type": "text/plain"}, 415),
        ({"json": {"job_type": "none"}}, 422),
    ],
)
def test_answers_are_as_they_are_described(
    call: Call, described: dict[str, Any], options: dict[str, Any], status: int
) -> None:
    answer = call("POST", "/v1/runs", **options)
    assert answer.status_code == status
    operation = described["paths"]["/v1/runs"]["post"]
    expected = {**operation["responses"], **refusals(described, operation)}[str(status)]
    schema = expected["content"][answer.mimetype]["schema"]
    OAS31Validator({**schema, "components": described["components"]}).validate(answer.json)
    headers = described["components"]["headers"]
    assert {name for name in expected["headers"] if headers[name].get("required")} <= set(answer.headers.keys())
