"""The application on the module's database, and a caller with a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import flask.testing
import pytest
import structlog
from werkzeug.test import TestResponse

from api.app import create_app
from shared import api_keys, database
from shared.audit import Admin

Call = Callable[..., TestResponse]

MAKER = Admin("tests")


@pytest.fixture(scope="module")
def app(module_url: str) -> Iterator[flask.Flask]:
    """The application, as gunicorn would load it; tests ask faster than any limit."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ROWCALL_RATE_LIMIT", "0")
        app = create_app(module_url)
    yield app
    app.extensions["database"].dispose()
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def keys(module_url: str) -> dict[str, str]:
    """A key for each scope."""
    with database.transaction(module_url) as connection:
        return {scope: api_keys.create_key(connection, f"test {scope}", [scope], MAKER) for scope in api_keys.SCOPES}


@pytest.fixture
def call(app: flask.Flask, keys: dict[str, str]) -> Call:
    """Make a request with the admin's key, or with another scope's."""
    client = app.test_client()

    def request(method: str, path: str, scope: str = "admin", **options: Any) -> TestResponse:
        headers = {"Authorization": f"Bearer {keys[scope]}", **options.pop("headers", {})}
        return client.open(path, method=method, headers=headers, **options)

    return request


def told(answer: TestResponse) -> dict[str, Any]:
    """The JSON object that was answered."""
    assert isinstance(answer.json, dict)
    return answer.json
