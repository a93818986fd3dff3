"""Conditional changes of definitions: ETag, If-Match and If-None-Match."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Call, invalid, told
from tests.api.definitions.conftest import NIGHTLY

pytestmark = pytest.mark.usefixtures("example_app")

CHANGED = "urn:rowcall:problem:definition-changed"

OTHER = {**NIGHTLY, "priority": 5}


def test_every_answer_that_shows_a_definition_has_its_etag(call: Call, path: str) -> None:
    made, seen, again = call("PUT", path, json=NIGHTLY), call("GET", path), call("PUT", path, json=NIGHTLY)
    assert made.headers["ETag"] == seen.headers["ETag"] == again.headers["ETag"] == '"1"'
    assert call("HEAD", path).headers["ETag"] == '"1"'
    assert call("PUT", path, json=OTHER).headers["ETag"] == '"2"'
    assert call("POST", f"{path}/pause").headers["ETag"] == '"2-paused"'
    assert call("GET", path).headers["ETag"] == '"2-paused"'
    assert call("POST", f"{path}/resume").headers["ETag"] == '"2"'


@pytest.mark.parametrize(("method", "end"), [("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")])
def test_a_definition_that_has_changed_since_it_was_seen_is_not_changed(
    nightly: dict[str, Any], call: Call, path: str, method: str, end: str
) -> None:
    assert nightly["revision"] == 1
    now = call("PUT", path, json=OTHER)
    sent = {"json": NIGHTLY} if method == "PUT" else {}
    for stale in ('"1"', 'W/"2"', '"1", "3"', '""'):
        refused = call(method, path + end, headers={"If-Match": stale}, **sent)
        assert (refused.status_code, told(refused)["type"]) == (412, CHANGED), stale
        assert refused.headers["ETag"] == told(refused)["current_etag"] == '"2"'
        assert call("GET", path).json == now.json
    done = call(method, path + end, headers={"If-Match": '"other", "2"'}, **sent)
    assert done.status_code in (200, 204)


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize("malformed", ["", "1", "W/1", '"1', '"1" "2"', '"1",', '*, "1"', 'w/"1"'])
def test_a_condition_that_cannot_be_read_is_refused(
    nightly: dict[str, Any], call: Call, path: str, header: str, malformed: str
) -> None:
    refused = call("PUT", path, json=OTHER, headers={header: malformed})
    assert invalid(refused) == {f"/{header}": 'must be * or ETags in quotes, such as "3"'}
    assert told(call("GET", path)) == nightly


def test_if_match_with_a_star_changes_what_exists_and_makes_nothing(call: Call, path: str) -> None:
    refused = call("PUT", path, json=NIGHTLY, headers={"If-Match": "*"})
    assert (refused.status_code, told(refused)["type"]) == (412, CHANGED)
    assert "leave out If-Match to create it" in told(refused)["detail"]
    assert "ETag" not in refused.headers
    assert call("GET", path).status_code == 404
    call("PUT", path, json=NIGHTLY)
    assert call("PUT", path, json=OTHER, headers={"If-Match": "*"}).status_code == 200


def test_if_none_match_with_a_star_makes_and_never_changes(call: Call, path: str) -> None:
    new = {"If-None-Match": "*"}
    assert call("PUT", path, json=NIGHTLY, headers=new).status_code == 201
    refused = call("PUT", path, json=OTHER, headers=new)
    assert (refused.status_code, refused.headers["ETag"]) == (412, '"1"')
    assert "send If-Match" in told(refused)["detail"]
    assert told(call("GET", path))["priority"] == 0
    call("DELETE", path)
    back = call("PUT", path, json=NIGHTLY, headers=new)
    assert (back.status_code, back.headers["ETag"]) == (201, '"2"')


def test_if_none_match_refuses_only_the_versions_that_it_names(nightly: dict[str, Any], call: Call, path: str) -> None:
    assert nightly["revision"] == 1
    for current in ('"1"', 'W/"1"'):
        assert call("PUT", path, json=OTHER, headers={"If-None-Match": current}).status_code == 412
    assert call("PUT", path, json=OTHER, headers={"If-None-Match": '"7"'}).status_code == 200


def test_openapi_describes_the_conditions(call: Call, path: str) -> None:
    described = told(call("GET", "/openapi.json"))["paths"]
    put = described["/v1/definitions/{name}"]["put"]
    assert {"If-Match", "If-None-Match"} <= {parameter["name"] for parameter in put["parameters"]}
    assert "412" in put["responses"]
    assert "ETag" in put["responses"]["201"]["headers"]
    for end in ("/pause", "/resume"):
        assert "412" in described[f"/v1/definitions/{{name}}{end}"]["post"]["responses"]
    assert "412" in described["/v1/definitions/{name}"]["delete"]["responses"]
