"""Headers of every response: what browsers and caches may do with it, and why a key was refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import flask
import pytest

from tests.api.conftest import PROBLEM, Call, There
from tests.api.serving import Server, request, served


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/definitions", 200),
        ("/v1/nowhere", 404),
        ("/nowhere", 404),
        ("/openapi.json", 200),
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 200),
    ],
)
def test_no_answer_is_stored_or_guessed_at(call: Call, path: str, status: int) -> None:
    answer = call("GET", path)
    assert answer.status_code == status
    assert (answer.headers["Cache-Control"], answer.headers["X-Content-Type-Options"]) == ("no-store", "nosniff")


def test_the_docs_page_may_be_kept_and_is_asked_for_again(call: Call) -> None:
    answer = call("GET", "/docs")
    assert (answer.headers["Cache-Control"], answer.headers["X-Content-Type-Options"]) == ("no-cache", "nosniff")


@pytest.mark.parametrize(
    ("authorization", "challenge"),
    [
        (None, "Bearer"),
        ("Basic cmM6cmM=", "Bearer"),
        ("Bearer nonsense", 'Bearer error="invalid_token"'),
        ("Bearer rc_00000000_" + "0" * 64, 'Bearer error="invalid_token"'),
    ],
)
def test_a_refused_key_is_told_in_the_challenge(app: flask.Flask, authorization: str | None, challenge: str) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    refused = app.test_client().get("/v1/runs/1", headers=headers)
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, challenge)


@pytest.mark.parametrize(
    ("scope", "method", "path", "needed"),
    [
        ("enqueue", "GET", "/v1/runs", "read"),
        ("read", "POST", "/v1/runs", "enqueue"),
        ("read", "DELETE", "/v1/definitions/{name}", "operate"),
        ("enqueue", "GET", "/metrics", "read"),
    ],
)
def test_a_missing_scope_is_named_in_the_challenge(
    call: Call, there: There, scope: str, method: str, path: str, needed: str
) -> None:
    refused = call(method, there.path(path), scope=scope)
    assert refused.status_code == 403
    assert refused.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{needed}"'


@pytest.fixture(scope="module")
def server(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("api")
    with served({"DATABASE_URL": module_url, "PATH": ""}, folder, ROWCALL_API_WORKERS="1") as server:
        yield server


@pytest.mark.parametrize("target", ["/healthz", "/v1/runs/1", "http://there.example/healthz"])
def test_a_request_of_http_1_1_without_a_host_is_refused(server: Server, target: str) -> None:
    raw = request("GET", target, "rc_key").replace(b"Host: here\r\n", b"")
    refused = server.ask(raw)
    assert (refused.status, refused.headers["Content-Type"]) == (400, PROBLEM)
    assert "Host" in refused.told["detail"]
    assert server.ask(raw.replace(b"HTTP/1.1", b"HTTP/1.0")).status in (200, 401)


def test_what_never_reaches_the_application_is_not_stored_or_guessed_at_either(server: Server) -> None:
    assert server.ask(b"GET /healthz HTTP/1.9\r\nHost: here\r\n\r\n").status == 400
    refused = server.ask(b"GET /healthz HTTP/9.9\r\n\r\n")
    assert refused.status == 400
    assert (refused.headers["Cache-Control"], refused.headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
