"""Hostile paths, queries, methods and headers: refused with a problem, and no row of any table changes.

The query parameters come from /openapi.json, so that the tests cover every route.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import flask
import pytest

from tests.api.conftest import Call, There, told

NO_NUMBERS = ("-1", "0", "201", "10" * 200, "1e3", "1.0", "0x10", "1_0", "+1", " 1", "\u0661", "", "NaN", "all", "true")

NO_CURSORS = ("", "x", "0", "-1", "eyJ9", "AAAA", "%00", "1,2", "2030-01-01T00:00:00Z,1", "c" * 2_000, "\u0661")


def described(call: Call) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield every operation of the API: method, path and its query parameters."""
    for path, operations in told(call("GET", "/openapi.json"))["paths"].items():
        for method, operation in operations.items():
            if method in {"get", "put", "post", "delete"}:
                parameters = [*operations.get("parameters", ()), *operation.get("parameters", ())]
                yield method.upper(), path, [one for one in parameters if one["in"] == "query"]


@pytest.mark.parametrize(
    "run_id", ["0", "-1", "00", "01", "+1", str(2**63), "1" + "0" * 400, "9" * 5_000, "1e3", "1.0"]
)
@pytest.mark.parametrize("path", ["/v1/runs/{}", "/v1/runs/{}/explain"])
def test_an_id_that_no_row_can_have_is_not_found(refused: Call, path: str, run_id: str) -> None:
    refused("GET", path.format(run_id), 404)


@pytest.mark.parametrize(
    "name",
    [
        "%00",
        "nightly%00",
        "%0a",
        "%7f",
        "%c2%85",
        "%ff",
        "%ed%a0%80",
        "\u0661",
        "%20",
        "n" * 5_000,
        "NIGHTLY",
        "*",
        "%",
    ],
)
def test_a_name_that_nothing_has_is_not_found(refused: Call, name: str) -> None:
    for method, path in [("GET", ""), ("GET", "/preview"), ("POST", "/pause"), ("POST", "/run-now"), ("DELETE", "")]:
        refused(method, f"/v1/definitions/{name}{path}", 404)
    refused("GET", f"/v1/runs/{name}", 404)


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/runs/",
        "/v1/runs/1/",
        "//v1/definitions",
        "/v1//definitions",
        "/v1/definitions//nightly",
        "/v1/../v1/definitions",
        "/v1/definitions/../definitions",
        "/v1/definitions/%2e%2e/definitions",
        "/v1/./definitions",
        "/v1/definitions/nightly/..",
        "/V1/definitions",
        "/v1/Definitions",
        "/v1/definitions;x=1",
        "/v1/definitions.json",
        "/v1%00/definitions",
        "/v2/definitions",
        "/static/../api/app.py",
        "/.env",
    ],
)
def test_another_way_to_write_a_path_leads_nowhere(refused: Call, path: str) -> None:
    refused("GET", path, 404)


@pytest.mark.parametrize("method", ["PATCH", "TRACE", "DELETE", "PUT", "CONNECT", "PROPFIND", "\u00fc"])
def test_a_method_that_a_path_has_not_is_told_those_it_has(refused: Call, method: str) -> None:
    answer = refused(method.encode().decode("latin-1"), "/v1/runs/1", 405)
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_no_header_makes_a_method_another_one(call: Call, digest: Any, name: str) -> None:
    before = digest()
    answer = call("GET", "/v1/definitions/nightly", headers={name: "DELETE"}, query_string={})
    assert (answer.status_code, digest()) == (200, before)
    assert call("GET", "/v1/definitions/nightly?_method=DELETE").status_code == 422
    assert digest() == before


def test_head_and_options_change_nothing_and_have_no_body(app: flask.Flask, call: Call, digest: Any) -> None:
    before = digest()
    for path in ("/v1/definitions", "/v1/definitions/nightly", "/v1/runs/999999", "/healthz", "/openapi.json"):
        assert call("HEAD", path).get_data() == b""
        assert "GET" in call("OPTIONS", path).headers["Allow"]
    assert call("HEAD", "/v1/runs?limit=1").status_code == 200
    assert call("HEAD", "/v1/stats?limit=1").status_code == 422
    assert digest() == before


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 200),
        ("", 200),
        ("*/*", 200),
        ("application/*", 200),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("text/html, application/xhtml+xml, */*;q=0.8", 200),
        ("text/xml", 406),
        ("text/*", 406),
        ("application/json;q=0", 406),
        ("application/jsonp", 406),
        ("*/json", 406),
        ("json", 406),
        ("nonsense", 406),
        (";;;,,,/", 406),
        ("application/json;q=nan", 200),
        ("text/xml;" * 2_000, 406),
    ],
)
def test_the_api_answers_json_and_says_so_to_who_takes_none(call: Call, accept: str | None, status: int) -> None:
    answer = call("GET", "/v1/definitions", headers={} if accept is None else {"Accept": accept})
    assert (answer.status_code, answer.is_json) == (status, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Accept-Encoding", "nonsense;q=x"),
        ("Accept-Encoding", "identity;q=0, *;q=0"),
        ("Accept-Charset", "utf-7"),
        ("Accept-Language", "tlh" * 5_000),
        ("Content-Encoding", "gzip"),
        ("X-Request-Id", "a b\tc"),
        ("X-Request-Id", "x" * 20_000),
        ("Range", "bytes=0-0"),
        ("If-Modified-Since", "yesterday"),
        ("Cookie", "a=" + "b" * 20_000),
        ("Host", "a b"),
        ("Host", "[::1"),
        ("Host", "evil.example:99999999"),
        ("Forwarded", "for=\0"),
        ("X-Forwarded-Prefix", "/v2"),
        ("User-Agent", "\x80\xff"),
    ],
)
def test_a_strange_header_breaks_nothing(call: Call, digest: Any, name: str, value: str) -> None:
    before = digest()
    answer = call("GET", "/v1/definitions", headers={name: value})
    assert (answer.status_code, digest()) in {(200, before), (400, before)}
    assert answer.mimetype == ("application/json" if answer.status_code == 200 else "application/problem+json")
    assert re.fullmatch("[A-Za-z0-9._-]{1,64}", answer.headers["X-Request-Id"])


def test_a_thousand_headers_break_nothing(call: Call) -> None:
    assert call("GET", "/v1/definitions", headers={f"X-{number}": "x" for number in range(1_000)}).status_code == 200


def test_a_query_that_a_route_does_not_ask_for_is_refused_by_name(refused: Call, call: Call, there: There) -> None:
    for method, path, _ in described(call):
        refused(method, there.path(path), 422, "unheard_of", query_string={"unheard_of": "1"})


def test_a_text_that_cannot_be_stored_is_refused_in_any_parameter(refused: Call, call: Call, there: There) -> None:
    for method, path, parameters in described(call):
        for parameter in parameters:
            refused(method, there.path(path), 422, parameter["name"], query_string={parameter["name"]: "a\0b"})


def test_a_parameter_that_is_no_list_is_given_once(refused: Call, call: Call, there: There) -> None:
    for method, path, parameters in described(call):
        for parameter in parameters:
            if parameter["schema"].get("type") != "array":
                twice = [(parameter["name"], "1"), (parameter["name"], "2")]
                refused(method, there.path(path), 422, parameter["name"], query_string=twice)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_limit_is_a_whole_number_within_its_bounds(refused: Call, call: Call, there: There, value: str) -> None:
    for method, path, parameters in described(call):
        for parameter in parameters:
            if parameter["name"] == "limit":
                refused(method, there.path(path), 422, "limit", query_string={"limit": value})


@pytest.mark.parametrize("value", NO_CURSORS)
def test_a_cursor_that_was_never_given_out_is_refused(refused: Call, call: Call, there: There, value: str) -> None:
    for method, path, parameters in described(call):
        for parameter in parameters:
            if parameter["name"] == "cursor":
                refused(method, there.path(path), 422, "cursor", query_string={"cursor": value})


@pytest.mark.parametrize("offset", ["+15:59", "+16:00", "+23:59", "-15:59", "-16:00", "-23:59"])
@pytest.mark.parametrize("time", ["2000-01-01T00:00:00", "2030-01-01T00:00:00.999999", "9998-12-31T23:59:59.999999"])
def test_a_time_with_any_offset_that_python_reads_breaks_nothing(
    call: Call, there: There, time: str, offset: str
) -> None:
    tried = 0
    for method, path, parameters in described(call):
        for parameter in parameters:
            if "pattern" in parameter["schema"] or parameter["name"] in {"from", "until", "asleep"}:
                answer = call(method, there.path(path), query_string={parameter["name"]: time + offset})
                assert answer.status_code in (200, 422), (path, parameter["name"], answer.text)
                tried += 1
    assert tried >= 10


@pytest.mark.parametrize("path", ["/v1/runs?key=%ff", "/v1/runs?%ff=1", "/v1/runs?queue=a%ed%a0%80", "/v1/effects?%c3"])
def test_a_query_that_is_not_text_is_refused(call: Call, path: str) -> None:
    refused = call("GET", path)
    assert (refused.status_code, "the query is not UTF-8" in told(refused)["detail"]) == (400, True)


def test_a_filter_that_is_empty_is_refused(refused: Call) -> None:
    refused("GET", "/v1/runs?queue=", 422, "queue")
    asked = {"action": "cancel", "filter": {"created_by": ""}}
    refused("POST", "/v1/operations", 422, "created_by", json=asked)
