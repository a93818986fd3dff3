"""Who may call: keys, scopes, and what a caller without them learns."""

from __future__ import annotations

import flask
import pytest

from shared import api_keys, database
from tests.api.conftest import MAKER, Call


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "Bearer",
        "Bearer nonsense",
        "Bearer rc_",
        "Bearer rc_00000000_" + "0" * 64,
        "Bearer rc_\0_x",
        "Bearer rc_ümläut_x",
        "Basic cmM6cmM=",
    ],
)
def test_without_a_good_key_nobody_is_let_in(app: flask.Flask, authorization: str | None) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    refused = app.test_client().get("/v1/runs/1", headers=headers)
    assert (refused.status_code, refused.mimetype) == (401, "application/problem+json")
    assert refused.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(("scope", "status"), [("enqueue", 403), ("operate", 403), ("read", 404), ("admin", 404)])
def test_a_key_without_the_scope_does_not_learn_what_exists(call: Call, scope: str, status: int) -> None:
    assert call("GET", "/v1/runs/999999999", scope=scope).status_code == status


def test_a_wrong_secret_under_a_right_prefix_is_refused(app: flask.Flask, keys: dict[str, str]) -> None:
    forged = keys["admin"][:-1] + ("0" if keys["admin"][-1] != "0" else "1")
    assert app.test_client().get("/v1/runs/1", headers={"Authorization": f"Bearer {forged}"}).status_code == 401


@pytest.mark.parametrize("end", ["revoked_at = now()", "expires_at = now() - interval '1 second'"])
def test_a_key_that_was_revoked_or_has_expired_opens_nothing(app: flask.Flask, module_url: str, end: str) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "short-lived", ["admin"], MAKER)
        database.fetch_all(connection, f"UPDATE api_keys SET {end} WHERE name = 'short-lived'")
    assert app.test_client().get("/v1/runs/1", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_only_a_hash_of_the_secret_is_stored(module_url: str, keys: dict[str, str]) -> None:
    secret = keys["admin"].split("_")[2]
    with database.transaction(module_url) as connection:
        stored = database.fetch_all(connection, "SELECT * FROM api_keys")
    assert secret not in str(stored)
    assert len(bytes.fromhex(secret)) >= 16
