"""The page on the module's database, and operators who have signed in with a key of each scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database, logs
from rowcall.base.database import PgConnection
from rowcall_api.app import create_app
from tests.api.serving import Server, served
from tests.page.visits import Visit
from tests.support.connections import disconnect

Browse = Callable[..., Visit]

MAKER = Operator("tests")

# What a scope alone cannot show: operators look, change, enqueue copies, and start operations.
KEYS = {**{scope: [scope] for scope in api_keys.SCOPES}, "operator": ["read", "operate", "enqueue"]}


@pytest.fixture(scope="module", autouse=True)
def app_of_these_tests(example_app: None) -> None:
    """Make the example the app of all tests here."""


@pytest.fixture(scope="module")
def app(module_url: str) -> Iterator[flask.Flask]:
    """Yield the application as gunicorn loads it, without rate limits."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ROWCALL_RATE_LIMIT", "0")
        environment.setenv("ROWCALL_ENVIRONMENT", "staging")
        app = create_app(module_url)
    yield app
    disconnect(app)
    logs.use(logs.Log())


@pytest.fixture(scope="module")
def keys(module_url: str) -> dict[str, str]:
    """Return a key for each scope, and the operator's."""
    with database.transaction(module_url) as connection:
        return {name: api_keys.create_key(connection, f"test {name}", scopes, MAKER) for name, scopes in KEYS.items()}


@pytest.fixture(scope="module")
def browse(app: flask.Flask, keys: dict[str, str]) -> Browse:
    """Return a function that signs in: with `operator`, `admin`, or one scope such as `read`."""

    def sign_in(scope: str = "operator") -> Visit:
        return Visit(app, keys[scope])

    return sign_in


@pytest.fixture
def committed(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection on which each statement is committed at once, so that the page sees it."""
    with closing(database.connect(module_url)) as connection:
        connection.autocommit = True
        yield connection


@pytest.fixture(scope="module")
def server(
    module_url: str, keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory, example_app: None
) -> Iterator[Server]:
    """Yield a real server on the module's database, for a browser."""
    settings = {
        "DATABASE_URL": module_url,
        "ROWCALL_APP": "rowcall_example",
        "ROWCALL_API_WORKERS": "1",
        "ROWCALL_ENVIRONMENT": "staging",
    }
    with served({**os.environ, **settings}, tmp_path_factory.mktemp("page")) as server:
        yield server
        assert "Traceback" not in server.log.read_text()
