"""The access line: one per request, whatever its outcome, without the caller's secrets."""

from __future__ import annotations

import json
from typing import Any

import flask
import pytest

from rowcall_api.http import errors, request_log
from tests.api.conftest import Call, There

FIELDS = {"timestamp", "level", "event", "request_id", "method", "status", "duration_ms"}


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the access lines since the last call."""
    every = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in every if line["event"] == "api answered"]


def test_a_request_leaves_one_line_that_tells_who_asked_what_and_how_it_ended(
    call: Call, keys: dict[str, str], there: There, capsys: pytest.CaptureFixture[str]
) -> None:
    call("GET", there.path("/v1/runs/{run_id}"), headers={"X-Request-Id": "mine-1"})
    [line] = lines(capsys)
    assert set(line) == {*FIELDS, "key", "route"}
    assert (line["key"], line["request_id"]) == (keys["admin"].split("_")[1], "mine-1")
    assert (line["method"], line["route"], line["status"]) == ("GET", "/v1/runs/<int:run_id>", 200)
    assert 0 <= line["duration_ms"] < 600_000


def test_a_request_without_a_key_has_a_line_without_one(app: flask.Flask, capsys: pytest.CaptureFixture[str]) -> None:
    app.test_client().get("/healthz")
    [line] = lines(capsys)
    assert set(line) == {*FIELDS, "route"}
    assert (line["route"], line["status"]) == ("/healthz", 200)


WRONG_KEY = "Bearer rc_00000000_" + "0" * 64

REFUSED: dict[str, tuple[int, str, str, dict[str, Any]]] = {
    "no key": (401, "GET", "/v1/runs/1", {"headers": {"Authorization": ""}}),
    "a malformed key": (401, "GET", "/v1/runs/1", {"headers": {"Authorization": "Bearer hush"}}),
    "a wrong key": (401, "GET", "/v1/runs/1", {"headers": {"Authorization": WRONG_KEY}}),
    "a key without the scope": (403, "GET", "/v1/runs/1", {"scope": "enqueue"}),
    "a path that leads nowhere": (404, "GET", "/v1/nowhere", {}),
    "a path outside": (404, "GET", "/nowhere", {}),
    "a null in a path": (404, "GET", "/v1/definitions/%00", {}),
    "a method that the path lacks": (405, "DELETE", "/v1/runs/1", {}),
    "an unknown method": (405, "BREW", "/v1/runs/1", {}),
    "an Accept without JSON": (406, "GET", "/v1/runs/1", {"headers": {"Accept": "text/html"}}),
    "a body too large": (413, "POST", "/v1/runs", {"data": b" " * 300_000, "content_type": "application/json"}),
    "a body that is not JSON": (400, "POST", "/v1/runs", {"data": b"{", "content_type": "application/json"}),
    "a body of another type": (415, "POST", "/v1/runs", {"data": b"{}", "content_type": "text/plain"}),
    "an unknown job type": (422, "POST", "/v1/runs", {"json": {"job_type": "nothing"}}),
    "a query that nobody asked for": (422, "GET", "/v1/runs/1?hush=1", {}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_request_has_its_line_too(call: Call, capsys: pytest.CaptureFixture[str], what: str) -> None:
    status, method, path, options = REFUSED[what]
    assert call(method, path, **options).status_code == status
    [line] = lines(capsys)
    assert (line["method"], line["status"]) == (method, status)
    assert line["problem"] == line["problem"].lower()


def test_a_wrong_key_is_told_by_the_prefix_that_was_sent(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    call("GET", "/v1/runs/1", headers={"Authorization": WRONG_KEY})
    call("GET", "/v1/runs/1", headers={"Authorization": "Bearer rc_nothing_like_it"})
    wrong, malformed = lines(capsys)
    assert (wrong["key"], wrong["status"]) == ("00000000", 401)
    assert "key" not in malformed


def breaks() -> str:
    raise ZeroDivisionError("a fault of ours")


def test_a_fault_of_ours_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    broken = flask.Flask("broken")
    errors.register(broken)
    request_log.register(broken)
    broken.add_url_rule("/break", view_func=breaks)
    broken.test_client().get("/break")
    [line] = lines(capsys)
    assert (line["level"], line["status"], line["problem"]) == ("warning", 500, "internal-error")


def test_no_line_repeats_a_key_a_query_or_a_payload(
    call: Call, keys: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = "zebrafish"
    call("GET", f"/v1/runs/1?{hidden}={hidden}")
    call("GET", "/v1/runs", query_string={"payload": json.dumps({"a": hidden})})
    call("GET", f"/v1/{hidden}/{keys['read']}")
    call("GET", f"/v1/definitions/{hidden}")
    call("POST", "/v1/runs", json={"job_type": hidden, "payload": {hidden: hidden}})
    call("POST", "/v1/runs", json={"job_type": "noop", "payload": {hidden: hidden}})
    call("GET", "/v1/runs/1", headers={"Authorization": f"Bearer {hidden}", "X-Request-Id": f"not {hidden}"})
    written = capsys.readouterr().err
    assert written.count('"api answered"') == 7
    for secret in (hidden, *(key.split("_")[2] for key in keys.values())):
        assert secret not in written
