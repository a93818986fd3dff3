"""Rate limits: what a caller is told, and how guessing keys is limited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flask
import flask.testing
import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.endpoints import Networks
from rowcall.base.prepared import Prepared
from rowcall_api.app import create_app
from rowcall_api.http.client_address import client_of
from rowcall_api.http.rate_limit import WRONG_KEYS
from tests.api.conftest import let_nobody_in, told

# So slow that no bucket refills while a test runs.
SLOW = {"ROWCALL_RATE_LIMIT": "0.01", "ROWCALL_RATE_BURST": "3", "ROWCALL_API_WORKERS": "1"}

BURST = 3

TRIES = int(WRONG_KEYS.burst)

WRONG = "rc_00000000_" + "0" * 64

# For each of two clients: the address that it claims, and the one that the proxy saw.
CLIENTS = (("192.0.2.7", "192.0.2.1"), ("192.0.2.1", "192.0.2.2"))


@contextmanager
def limited(url: str, **settings: str) -> Iterator[flask.testing.FlaskClient]:
    """Yield a client of an application with these limits."""
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


def offered(client: flask.testing.FlaskClient, headers: dict[str, str], times: int) -> list[int]:
    """Return the statuses of requests with a wrong key and these headers."""
    return [client.get("/v1/runs/1", headers={**bearer(WRONG), **headers}).status_code for _ in range(times)]


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
        assert statuses(client, "wrong", TRIES + 1)[-1] == 401


def test_machines_ask_whether_it_is_alive_as_often_as_they_like(module_url: str) -> None:
    with limited(module_url) as client:
        for path in ("/healthz", "/readyz"):
            assert {client.get(path).status_code for _ in range(BURST + 2)} == {200}


def test_an_address_that_guesses_keys_is_told_to_wait(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url) as client:
        assert set(statuses(client, WRONG, TRIES)) == {401}
        # Other headers do not change the address.
        headers = {**bearer(WRONG), "X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"}
        guessed = client.get("/v1/definitions", headers=headers)
        assert guessed.status_code == 429
        assert 0 < int(guessed.headers["Retry-After"]) <= 10
        assert statuses(client, "nonsense", 1) == [429]
        assert client.get("/v1/definitions").status_code == 401


def test_wrong_keys_lock_no_valid_one_out_that_comes_from_their_address(module_url: str, keys: dict[str, str]) -> None:
    with limited(module_url) as client:
        assert statuses(client, WRONG, TRIES + 1)[-1] == 429
        assert statuses(client, "nonsense", TRIES + 1)[-1] == 429
        # It was not used before, so only the database knows it.
        assert statuses(client, keys["admin"], 1) == [200]


def test_a_malformed_key_never_asks_the_database(fresh_url: str) -> None:
    with limited(fresh_url) as client:
        let_nobody_in(fresh_url)
        assert statuses(client, WRONG, 1) == [503]
        assert statuses(client, "nonsense", TRIES) == [401] * TRIES
        assert statuses(client, "nonsense", 1) == [429]


def test_a_wrong_key_costs_the_database_one_look_up(module_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def execute(cursor: Any, connection: PgConnection, sql: str, parameters: Any) -> None:
        asked.append(sql)
        executed(cursor, connection, sql, parameters)

    executed = vars(database)["_execute"]
    with limited(module_url) as client:
        monkeypatch.setattr(database, "_execute", execute)
        assert statuses(client, WRONG, TRIES + 1)[-1] == 429
    whose_session, *look_ups = asked
    assert "pg_backend_pid" in whose_session
    assert [Prepared.of(api_keys.FIND).name in sql for sql in look_ups] == [True] * (TRIES + 1)


def test_behind_a_trusted_proxy_each_client_has_tries_of_its_own(module_url: str) -> None:
    with limited(module_url, ROWCALL_TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8") as client:
        guesser, neighbour = ({"X-Forwarded-For": f"{spoofed}, {address}, 10.1.2.3"} for spoofed, address in CLIENTS)
        assert offered(client, guesser, TRIES + 1)[-1] == 429
        assert offered(client, neighbour, 1) == [401]
        # The addresses that the guesser itself sent do not make it a different client.
        assert offered(client, {"X-Forwarded-For": "203.0.113.9, 192.0.2.1, 10.1.2.3"}, 1) == [429]


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (None, "10.0.0.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("203.0.113.5, 192.0.2.1", "192.0.2.1"),
        ("192.0.2.1, 10.9.9.9 ,2001:db8::7", "192.0.2.1"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[2001:db8:1:2:3::4]:443", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        # A header with anything but addresses is ignored, and the proxy's own address counts.
        ("192.0.2.1, unknown", "10.0.0.1"),
        ("192.0.2.1,", "10.0.0.1"),
        ("", "10.0.0.1"),
    ],
)
def test_the_right_most_address_that_is_no_trusted_proxy_is_the_clients(forwarded: str | None, address: str) -> None:
    proxies = Networks.parse("10.0.0.0/8 2001:db8::7")
    assert client_of("10.0.0.1", forwarded, proxies) == address
    assert client_of("::ffff:10.0.0.1", forwarded, proxies) == address
    assert client_of("198.51.100.1", forwarded, proxies) == "198.51.100.1"
    assert client_of("198.51.100.1", forwarded, None) == "198.51.100.1"


def test_a_caller_who_is_told_to_wait_has_an_access_line_too(
    module_url: str, keys: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with limited(module_url) as client:
        assert statuses(client, keys["read"], BURST + 1)[-1] == 429
        assert statuses(client, "nonsense", TRIES + 1)[-1] == 429
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["status"], line.get("key")) for line in lines] == [
        *[(200, keys["read"].split("_")[1])] * BURST,
        (429, keys["read"].split("_")[1]),
        *[(401, None)] * TRIES,
        (429, None),
    ]
    assert lines[-1]["problem"] == "too-many-requests"


def test_a_key_that_was_right_and_is_no_more_counts_as_a_guess(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "ended", ["read"], Operator("tests"))
    with limited(module_url, ROWCALL_RATE_BURST="100") as client:
        assert statuses(client, key, 1) == [200]
        with database.transaction(module_url) as connection:
            database.fetch_all(connection, "UPDATE rowcall.api_keys SET revoked_at = now() WHERE name = 'ended'")
        assert statuses(client, key, TRIES + 1) == [401] * TRIES + [429]
