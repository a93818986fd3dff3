"""Who may call: keys, scopes, and the responses to callers without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import flask
import pytest
from werkzeug.test import TestResponse

from rowcall.access import api_keys
from rowcall.base import database
from rowcall_api.http import errors, guard
from tests.api.conftest import MAKER, Call, There

GONE = 999_999_999

# A route's input is not read before the key, so any route can get this.
NONSENSE: dict[str, Any] = {"data": b"{", "content_type": "text/plain", "query_string": {"limit": "\0"}}

Route = tuple[str, str]


def routes(app: flask.Flask, parts: Mapping[str, object]) -> Iterator[Route]:
    """Yield every method of every route below /v1, with these values for its path parameters."""
    adapter = app.url_map.bind("localhost")
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/v1"):
            values = {part: parts[part] for part in rule.arguments}
            for method in sorted(rule.methods or ()):
                yield method, adapter.build(rule.endpoint, values, method)


def missing(value: object) -> object:
    """Return a value like this one that does not exist."""
    return {"nightly": "nobody", "sent_emails": "payments"}.get(str(value), GONE)


def said(answer: TestResponse) -> tuple[int, object]:
    """Return what the caller gets."""
    return answer.status_code, answer.get_data()


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "Bearer",
        "Bearer nonsense",
        "Bearer rc_",
        "Bearer rc_00000000_" + "0" * 64,
        "Bearer rc_00000000_" + "0" * 20_000,
        "Bearer rc_\0_x",
        "Bearer rc_ümläut_x",
        "Bearer rc_" + "\u0660" * 8 + "_" + "0" * 64,
        "Basic cmM6cmM=",
        "Basic ümläut",
        "Bearer token=1, other=2",
    ],
)
def test_without_a_good_key_nobody_is_let_in(app: flask.Flask, authorization: str | None) -> None:
    headers = {"Authorization": authorization.encode().decode("latin-1")} if authorization else {}
    refused = app.test_client().get("/v1/runs/1", headers=headers)
    assert (refused.status_code, refused.mimetype) == (401, "application/problem+json")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_every_route_asks_for_a_key_before_anything_else(app: flask.Flask, there: There) -> None:
    client = app.test_client()
    known = client.get("/v1/runs/1")
    for method, path in [*routes(app, there.parts), ("GET", "/v1/nowhere"), ("PATCH", "/v1/runs")]:
        refused = client.open(path, method=method, **NONSENSE)
        assert refused.headers["WWW-Authenticate"] == "Bearer", (method, path)
        assert said(refused) == (401, b"" if method == "HEAD" else known.get_data()), (method, path)


@pytest.mark.parametrize("scope", ["enqueue", "read", "operate"])
def test_a_key_without_the_scope_is_told_the_same_of_what_is_there_and_what_is_not(
    app: flask.Flask, call: Call, there: There, scope: str
) -> None:
    existing = list(routes(app, there.parts))
    gone = list(routes(app, {part: missing(value) for part, value in there.parts.items()}))
    refused = 0
    for (method, path), (_, other) in zip(existing, gone, strict=True):
        first, second = (call(method, one, scope=scope, **NONSENSE) for one in (path, other))
        if first.status_code == 403:
            assert said(second) == said(first), (method, path)
            refused += 1
    assert 0 < refused < len(existing)


@pytest.mark.parametrize(("scope", "status"), [("enqueue", 403), ("operate", 403), ("read", 404), ("admin", 404)])
def test_a_key_without_the_scope_does_not_learn_what_exists(call: Call, scope: str, status: int) -> None:
    assert call("GET", f"/v1/runs/{GONE}", scope=scope).status_code == status


def test_each_scope_opens_what_it_is_for_and_admin_opens_all(app: flask.Flask, there: There) -> None:
    named = {
        (method, rule.rule): getattr(app.view_functions[rule.endpoint], "needed_scope", None)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/v1")
        for method in rule.methods or ()
    }
    assert set(named.values()) <= {"enqueue", "read", "operate", "admin", "any"}
    assert {path for (_, path), scope in named.items() if scope == "any"} == {"/v1/keys/me"}
    admins = {path for (_, path), scope in named.items() if scope == "admin"}
    assert admins == {"/v1/audit", "/v1/keys", "/v1/keys/<int:key_id>/rotate", "/v1/keys/<int:key_id>/revoke"}
    assert {scope for (method, _), scope in named.items() if method == "GET"} == {"read", "admin", "any"}
    assert named["POST", "/v1/runs"] == "enqueue"
    assert named["PUT", "/v1/definitions/<name>"] == "operate"


@pytest.fixture
def forgetful(app: flask.Flask) -> flask.Flask:
    """Yield an application with the same guard, and a route that names no scope."""
    forgetful = flask.Flask("forgetful")
    forgetful.config.update(app.config)
    forgetful.extensions = app.extensions
    errors.register(forgetful)
    guard.register(forgetful)
    forgetful.add_url_rule("/v1/forgotten/<name>", view_func=lambda name: f"open to {name}")
    return forgetful


def test_a_route_that_names_no_scope_is_the_admins(forgetful: flask.Flask, keys: dict[str, str]) -> None:
    opened = {
        scope: forgetful.test_client().get("/v1/forgotten/all", headers={"Authorization": f"Bearer {key}"}).status_code
        for scope, key in keys.items()
    }
    assert opened == {**dict.fromkeys(opened, 403), "admin": 200}


def test_a_path_with_control_characters_reaches_no_route(forgetful: flask.Flask, keys: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {keys['admin']}"}
    for name in ("%00", "a%00b", "%0a", "%7f", "%c2%85"):
        assert forgetful.test_client().get(f"/v1/forgotten/{name}", headers=headers).status_code == 404


def test_a_key_counts_only_in_its_header(app: flask.Flask, keys: dict[str, str]) -> None:
    client = app.test_client()
    client.set_cookie("Authorization", f"Bearer {keys['admin']}")
    client.set_cookie("key", keys["admin"])
    for name in ("key", "api_key", "access_token", "authorization"):
        assert client.get("/v1/definitions", query_string={name: keys["admin"]}).status_code == 401


def test_a_wrong_secret_under_a_right_prefix_is_refused(app: flask.Flask, keys: dict[str, str]) -> None:
    forged = keys["admin"][:-1] + ("0" if keys["admin"][-1] != "0" else "1")
    assert app.test_client().get("/v1/runs/1", headers={"Authorization": f"Bearer {forged}"}).status_code == 401


@pytest.mark.parametrize("end", ["revoked_at = now()", "expires_at = now() - interval '1 second'"])
def test_a_key_that_was_revoked_or_has_expired_opens_nothing(app: flask.Flask, module_url: str, end: str) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "short-lived", ["admin"], MAKER)
        database.fetch_all(connection, f"UPDATE rowcall.api_keys SET {end} WHERE name = 'short-lived'")
    assert app.test_client().get("/v1/runs/1", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_only_a_hash_of_the_secret_is_stored(module_url: str, keys: dict[str, str]) -> None:
    secret = keys["admin"].split("_")[2]
    with database.transaction(module_url) as connection:
        stored = database.fetch_all(connection, "SELECT * FROM rowcall.api_keys")
    assert secret not in str(stored)
    assert len(bytes.fromhex(secret)) >= 16


def last_use(url: str, scope: str) -> datetime | None:
    with database.transaction(url) as connection:
        used: datetime | None = database.fetch_value(
            connection, "SELECT last_used_at FROM rowcall.api_keys WHERE name = %(name)s", {"name": f"test {scope}"}
        )
    return used


def used(connection: database.PgConnection, scope: str, when: str) -> None:
    sql = f"UPDATE rowcall.api_keys SET last_used_at = {when} WHERE name = %(name)s"
    database.fetch_all(connection, sql, {"name": f"test {scope}"})


@pytest.mark.parametrize(
    ("before", "noted"),
    [("NULL", True), ("now() - interval '61 seconds'", True), ("now() - interval '30 seconds'", False)],
)
def test_a_keys_last_use_is_known_to_the_minute(call: Call, module_url: str, before: str, noted: bool) -> None:
    with database.transaction(module_url) as connection:
        used(connection, "read", before)
    was = last_use(module_url, "read")
    assert call("GET", "/v1/definitions", scope="read").status_code == 200
    assert (last_use(module_url, "read") != was) is noted


def test_a_refused_request_counts_as_a_use_of_the_key(call: Call, module_url: str) -> None:
    assert call("GET", "/v1/definitions", scope="enqueue").status_code == 403
    assert last_use(module_url, "enqueue") is not None


@pytest.mark.parametrize(
    "held",
    [
        "SELECT FROM rowcall.api_keys WHERE name = 'test operate' FOR UPDATE",
        "LOCK TABLE rowcall.api_keys IN SHARE MODE",
    ],
)
def test_noting_a_use_neither_waits_for_anybody_nor_fails_a_request(
    call: Call, module_url: str, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A statement that waited would exceed the test's timeout.
    monkeypatch.setattr("rowcall_api.http.database.PATIENCE_SECONDS", 150)
    with database.transaction(module_url) as connection:
        used(connection, "operate", "NULL")
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, held)
        assert call("GET", f"/v1/runs/{GONE}", scope="operate").status_code == 403
        connection.rollback()
    assert last_use(module_url, "operate") is None
