"""Errors are always problem documents, never tracebacks."""

from __future__ import annotations

import gzip
import json
import re

import flask
import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.errors import DatabaseUnreachable, SchemaMismatch
from rowcall.base.outages import LOCKED
from rowcall_api.app import create_app
from rowcall_api.http import errors, request_log
from rowcall_migrations.migrate import migrate
from tests.api.conftest import Call, let_nobody_in, told

PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/v1/nothing", {}, 404),
        ("GET", "/v1/runs/one", {}, 404),
        ("DELETE", "/v1/runs/1", {}, 405),
        ("POST", "/v1/runs", {"data": b"{", "content_type": "application/json"}, 400),
        ("POST", "/v1/runs", {"data": b"\xff", "content_type": "application/json"}, 400),
        ("POST", "/v1/runs", {"data": b"[" * 50_000, "content_type": "application/json"}, 400),
        ("POST", "/v1/runs", {"data": b'{"job_type": NaN}', "content_type": "application/json"}, 422),
        ("POST", "/v1/runs", {"data": b'{"priority": ' + b"9" * 5000 + b"}", "content_type": "application/json"}, 422),
        ("POST", "/v1/runs", {"data": b'{"job_type": "noop"}', "content_type": "text/plain"}, 415),
        ("POST", "/v1/runs", {"data": b"x" * 300_000, "content_type": "application/json"}, 413),
    ],
)
def test_what_cannot_be_answered_is_a_problem(
    call: Call, method: str, path: str, options: dict[str, object], status: int
) -> None:
    answer = call(method, path, **options)
    assert (answer.status_code, answer.mimetype) == (status, PROBLEM)
    assert told(answer)["status"] == status
    assert told(answer)["type"].startswith("urn:rowcall:problem:")


def test_a_405_says_what_is_allowed(call: Call) -> None:
    answer = call("DELETE", "/v1/definitions")
    assert "GET" in answer.headers["Allow"]
    assert told(answer)["detail"] == "DELETE is not allowed here; allowed: GET"


def test_an_unknown_address_leads_to_the_documentation(call: Call) -> None:
    assert told(call("GET", "/v1/nothing"))["detail"] == "there is nothing at this URL; /docs lists all operations"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "x", "identity, gzip"])
def test_a_compressed_body_is_refused_with_what_to_do(call: Call, coding: str) -> None:
    body = gzip.compress(b"{}") if "gzip" in coding else b'{"job_type": "noop"}'
    headers = {"Content-Encoding": coding}
    answer = call("POST", "/v1/runs", data=body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.mimetype) == (415, PROBLEM)
    assert told(answer)["detail"] == "the body has a Content-Encoding, which is not decoded: send it uncompressed"


@pytest.mark.parametrize("coding", ["identity", "Identity", ""])
def test_a_body_may_be_declared_as_uncompressed(call: Call, coding: str) -> None:
    assert call("POST", "/v1/runs", json={"job_type": "noop"}, headers={"Content-Encoding": coding}).status_code == 202


def test_a_body_too_large_says_how_large_it_may_be(call: Call) -> None:
    answer = call("POST", "/v1/runs", data=b"x" * 300_000, content_type="application/json")
    assert told(answer)["detail"] == "the body is larger than 262144 bytes"


def test_a_fault_of_ours_is_a_500_without_a_trace_that_names_the_request() -> None:
    answer = app_that_breaks().test_client().get("/break", headers={"X-Request-Id": "find-me"})
    assert (answer.status_code, answer.mimetype) == (500, PROBLEM)
    assert "find-me" in told(answer)["detail"]
    assert "Traceback" not in answer.get_data(as_text=True)


def breaks() -> str:
    raise ZeroDivisionError("a fault of ours")


def app_that_breaks() -> flask.Flask:
    """Return an application with the same error handling and request ids, and views that fail."""
    broken = flask.Flask("broken")
    errors.register(broken)
    request_log.register(broken)
    broken.add_url_rule("/break", view_func=breaks)
    return broken


def test_every_answer_has_a_request_id_and_a_plain_one_is_taken_over(call: Call) -> None:
    assert call("GET", "/healthz").headers["X-Request-Id"]
    assert call("GET", "/healthz", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    assert call("GET", "/healthz", headers={"X-Request-Id": "not plain"}).headers["X-Request-Id"] != "not plain"


def test_the_interface_describes_every_route_of_its_own(call: Call, app: flask.Flask) -> None:
    described = told(call("GET", "/openapi.json"))
    assert described["openapi"].startswith("3.1")
    routes = {re.sub(r"<(?:[^<>]+:)?(\w+)>", r"{\1}", rule.rule) for rule in app.url_map.iter_rules()}
    assert set(described["paths"]) == {route for route in routes if route.startswith("/v1/")}
    assert {"/v1/runs/{run_id}", "/v1/definitions/{name}"} <= set(described["paths"])


def test_an_api_does_not_start_on_an_older_schema(fresh_url: str) -> None:
    migrate(fresh_url, 3, "base")
    with pytest.raises(SchemaMismatch, match="run `rowcall migrate`"):
        create_app(fresh_url)


def test_an_api_does_not_start_without_its_database() -> None:
    with pytest.raises(DatabaseUnreachable, match="the database cannot be reached"):
        create_app("postgresql://me:hush@127.0.0.1:1/none")


def test_what_another_transaction_holds_is_waited_for_only_so_long_and_can_be_asked_for_again(
    call: Call, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall_api.http.database.PATIENCE_SECONDS", 0.1)
    asked = {"json": {"job_type": "noop"}, "headers": {"Idempotency-Key": "held"}}
    with database.transaction(module_url) as holder:
        queue.enqueue(holder, "noop", {}, key="held", key_owner="api:test admin")
        waited = call("POST", "/v1/runs", **asked)
    assert (waited.status_code, told(waited)["type"]) == (503, "urn:rowcall:problem:database-unreachable")
    assert told(waited)["detail"] == LOCKED
    assert waited.headers["Retry-After"]
    assert call("POST", "/v1/runs", **asked).status_code == 200


@pytest.mark.parametrize(
    ("code", "told_of"), [("40001", "another transaction changed the same rows"), ("57014", "the server cancelled")]
)
def test_what_the_database_gives_up_can_be_asked_for_again(
    call: Call, module_url: str, code: str, told_of: str
) -> None:
    trigger = (
        "CREATE FUNCTION rowcall.gives_up() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'gives up' USING ERRCODE = '{code}'; END $$;"
        "CREATE TRIGGER gives_up BEFORE INSERT ON rowcall.job_runs EXECUTE FUNCTION rowcall.gives_up()"
    )
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, trigger)
    refused = call("POST", "/v1/runs", json={"job_type": "noop"})
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, "DROP FUNCTION rowcall.gives_up CASCADE")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
    assert told_of in told(refused)["detail"]


def test_ready_turns_into_a_problem_when_the_schema_or_the_database_goes(empty_url: str) -> None:
    migrate(empty_url, 3)
    app = create_app(empty_url)
    client = app.test_client()
    assert client.get("/readyz").status_code == 200
    migrate(empty_url, 3, "base")
    behind = client.get("/readyz")
    assert (behind.status_code, behind.mimetype) == (503, PROBLEM)
    assert "run `rowcall migrate`" in told(behind)["detail"]
    key = {"Authorization": "Bearer rc_00000000_" + "0" * 64}
    assert told(client.get("/v1/runs/1", headers=key)) == told(behind)
    let_nobody_in(empty_url)
    gone = client.get("/readyz")
    assert (gone.status_code, gone.mimetype) == (503, PROBLEM)
    assert gone.headers["Retry-After"]
    assert client.get("/healthz").status_code == 200
    app.extensions["database"].dispose()


def test_what_is_wrong_with_the_database_is_in_the_log_and_not_in_an_answer(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROWCALL_METRICS_PUBLIC", "on")
    migrate(empty_url, 3)
    app = create_app(empty_url)
    let_nobody_in(empty_url)
    name = empty_url.rsplit("/", 1)[1]
    wrong = {"Authorization": "Bearer rc_00000000_" + "0" * 64}
    for path, headers in (("/readyz", {}), ("/v1/runs/1", wrong), ("/v1/nowhere", wrong), ("/metrics", {})):
        answer = app.test_client().get(path, headers=headers)
        # The error names the database and its user, which a caller without a key must not learn.
        assert not re.search(rf"{name}|port|user|host|FATAL|127\.0\.0\.1", answer.get_data(as_text=True)), path
        line = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert line["status"] == answer.status_code
        assert (name in line["error"], line["request_id"]) == (True, answer.headers["X-Request-Id"]), path
        if answer.status_code == 503:
            assert "the database cannot be reached" in told(answer)["detail"]
    app.extensions["database"].dispose()


def test_each_invalid_value_is_told_with_its_part_of_the_request_its_pointer_and_a_code(call: Call) -> None:
    body = {"payload": {"a/b": "\0"}, "priority": None, "colour": "red"}
    unstorable = call("POST", "/v1/runs", json=body)
    assert told(unstorable)["errors"] == [
        {
            "in": "body",
            "pointer": "/payload/a~1b",
            "code": "invalid",
            "detail": "contains a null character, which cannot be stored",
        }
    ]
    body["payload"] = {}
    by_schema = call("POST", "/v1/runs", json=body)
    assert {(error["in"], error["pointer"], error["code"]) for error in told(by_schema)["errors"]} == {
        ("body", "/job_type", "missing"),
        ("body", "/priority", "null"),
        ("body", "/colour", "unknown"),
    }
    for path, where, pointer in [
        ("/v1/runs?limit=0", "query", "/limit"),
        ("/v1/runs?cursor=nonsense", "query", "/cursor"),
        ("/v1/stats?colour=red", "query", "/colour"),
    ]:
        [error] = told(call("GET", path))["errors"]
        assert (error["in"], error["pointer"]) == (where, pointer)


def test_an_invalid_value_of_a_filter_in_a_body_is_told_there(call: Call) -> None:
    refused = call("POST", "/v1/operations", json={"action": "cancel", "filter": {"status": ["succeeded"]}})
    assert [(error["in"], error["pointer"]) for error in told(refused)["errors"]] == [("body", "/filter/status")]
