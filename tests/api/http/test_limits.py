"""How often one may call: what a caller is told, and what a guesser of keys meets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import flask
import flask.testing
import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall_api.app import create_app
from rowcall_api.http.rate_limit import WRONG_KEYS
from tests.api.conftest import told

# So slow that no bucket fills while a test runs.
SLOW = {"ROWCALL_RATE_LIMIT": "0.01", "ROWCALL_RATE_BURST": "3", "ROWCALL_API_WORKERS": "1"}

BURST = 3


@contextmanager
def limited(url: str, **settings: str) -> Iterator[flask.testing.FlaskClient]:
    """A client of an application with these limits."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {**SLOW, **settings}.items():
            environment.setenv(name, value)
        app = create_app(url)
    yield app.test_client()
    app.extensions["database"].dispose()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def statuses(client: flask.testing.FlaskClient, key: str, times: int) -> list[int]:
    return [client.get("/v1/definitions", headers=bearer(key)).status_code for _ in range(times)]


def test_a_key_that_calls_too_often_is_told_when_to_come_again(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url) as client:
        first = client.get("/v1/definitions", headers=bearer(keys["read"]))
        assert first.headers["RateLimit-Policy"] == '"key";q=3;w=300'
        assert first.headers["RateLimit"] == '"key";r=2;t=100'
        assert statuses(client, keys["read"], BURST - 1) == [200] * (BURST - 1)
        refused = client.get("/v1/definitions", headers=bearer(keys["read"]))
        assert (refused.status_code, refused.mimetype) == (429, "application/problem+json")
        assert told(refused)["type"] == "urn:rowcall:problem:too-many-requests"
        wait = refused.headers["Retry-After"]
        assert 0 < int(wait) <= 100
        assert refused.headers["RateLimit"] == f'"key";r=0;t={wait}'
        assert statuses(client, keys["admin"], 1) == [200]


def test_every_answer_to_a_key_counts_also_those_that_refuse(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url) as client:
        paths = ("/v1/nowhere", "/v1/runs/1", "/v1/definitions?unknown=1", "/v1/definitions")
        answers = [client.get(path, headers=bearer(keys["read"])) for path in paths]
        assert [answer.status_code for answer in answers] == [404, 404, 422, 429]
        assert all("RateLimit" in answer.headers for answer in answers)


def test_what_a_key_has_left_is_known_without_the_database(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "busy", ["read"], Operator("tests"))
    with limited(module_url) as client:
        assert statuses(client, key, BURST + 1)[-1] == 429
        with database.transaction(module_url) as connection:
            database.fetch_all(connection, "UPDATE rowcall.api_keys SET revoked_at = now() WHERE name = 'busy'")
        assert statuses(client, key, 1) == [429]


def test_each_process_of_the_server_lets_its_share_through(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url, ROWCALL_RATE_BURST="8", ROWCALL_API_WORKERS="4") as client:
        assert statuses(client, keys["read"], 3) == [200, 200, 429]


def test_a_limit_of_nothing_lets_everything_through(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url, ROWCALL_RATE_LIMIT="0") as client:
        assert set(statuses(client, keys["read"], 10)) == {200}
        assert "RateLimit" not in client.get("/v1/definitions", headers=bearer(keys["read"])).headers
        assert statuses(client, "wrong", int(WRONG_KEYS.burst) + 1)[-1] == 401


def test_machines_ask_whether_it_is_alive_as_often_as_they_like(module_url: str) -> None:
    with limited(module_url) as client:
        for path in ("/healthz", "/readyz"):
            assert {client.get(path).status_code for _ in range(BURST + 2)} == {200}


def test_an_address_that_guesses_keys_is_soon_not_listened_to(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url) as client:
        assert statuses(client, keys["read"], 1) == [200]
        assert set(statuses(client, "rc_00000000_" + "0" * 64, int(WRONG_KEYS.burst))) == {401}
        # Another header does not make it another address.
        headers = {**bearer(keys["admin"]), "X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"}
        guessed = client.get("/v1/definitions", headers=headers)
        assert guessed.status_code == 429
        assert 0 < int(guessed.headers["Retry-After"]) <= 10
        # Behind a proxy all have one address: whoever had a right key before is let in.
        assert statuses(client, keys["read"], 1) == [200]
        assert client.get("/v1/definitions").status_code == 401


def test_a_key_that_was_right_and_is_no_more_counts_as_a_guess(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "ended", ["read"], Operator("tests"))
    with limited(module_url, ROWCALL_RATE_BURST="100") as client:
        assert statuses(client, key, 1) == [200]
        with database.transaction(module_url) as connection:
            database.fetch_all(connection, "UPDATE rowcall.api_keys SET revoked_at = now() WHERE name = 'ended'")
        assert statuses(client, key, int(WRONG_KEYS.burst) + 1) == [401] * int(WRONG_KEYS.burst) + [429]
