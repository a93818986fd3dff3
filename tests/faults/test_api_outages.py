"""While its database does not answer or is read-only, the API answers every request, and serves the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flask
import psycopg2
import pytest
from werkzeug.test import TestResponse

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database, logs
from rowcall.base.database import PgConnection, driver_connect, fetch_value, pool
from rowcall.base.errors import DatabaseUnreachable
from rowcall_api.app import create_app
from rowcall_api.http.database import transaction
from tests.support.silence import Network, network


@pytest.fixture
def wires(fresh_url: str) -> Iterator[Network]:
    with network(fresh_url) as made:
        yield made


@pytest.fixture
def app(wires: Network, monkeypatch: pytest.MonkeyPatch) -> Iterator[flask.Flask]:
    monkeypatch.setattr("rowcall_api.http.database.ANSWER_SECONDS", 0.5)
    app = create_app(wires.url)
    yield app
    app.extensions["database"].dispose()
    logs.use(logs.Log())


@pytest.fixture
def key(fresh_url: str) -> str:
    with database.transaction(fresh_url) as connection:
        return api_keys.create_key(connection, "test", ["admin"], Operator("a test"))


def enqueue(app: flask.Flask, key: str) -> TestResponse:
    headers = {"Authorization": f"Bearer {key}"}
    return app.test_client().post("/v1/runs", json={"job_type": "noop"}, headers=headers)


def ask_when_silent(wires: Network) -> None:
    with transaction() as connection:
        wires.fall_silent()
        fetch_value(connection, "SELECT 1")


def test_a_request_on_a_connection_that_fell_silent_is_answered_and_the_next_is_served(
    app: flask.Flask, key: str, wires: Network
) -> None:
    with app.app_context():
        with pytest.raises(DatabaseUnreachable):
            ask_when_silent(wires)
        assert enqueue(app, key).status_code == 202


def test_connections_that_fell_silent_in_the_pool_are_replaced(
    app: flask.Flask, key: str, wires: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "QUIET_SECONDS", 0.0)  # a connection that was used just now is not asked
    assert enqueue(app, key).status_code == 202
    wires.fall_silent()
    assert enqueue(app, key).status_code == 202


def test_a_server_that_ends_each_new_connection_at_once_is_an_outage(
    app: flask.Flask, key: str, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*asked: Any) -> PgConnection:
        connection = driver_connect(*asked)
        with database.transaction(fresh_url) as other:
            fetch_value(other, f"SELECT pg_terminate_backend({connection.info.backend_pid}, 60000)")
        return connection

    app.extensions["database"].dispose()
    monkeypatch.setattr(pool, "driver_connect", connect)
    assert enqueue(app, key).status_code == 503


def test_a_database_that_takes_no_writes_is_an_outage(app: flask.Flask, key: str, fresh_url: str) -> None:
    name = psycopg2.extensions.parse_dsn(fresh_url)["dbname"]
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    refused = enqueue(app, key)
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
    assert "read-only" in refused.get_json()["detail"]
    assert app.test_client().get("/readyz").status_code == 503
