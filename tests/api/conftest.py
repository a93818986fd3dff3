"""The application on the module's database, and a client with keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import flask.testing
import pytest
from werkzeug.test import TestResponse

from rowcall import definitions, queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database, logs
from rowcall.job_types import catalogue
from rowcall.queue.operations import Action
from rowcall.status import Status
from rowcall_api.app import create_app
from tests.api.serving import ONE_THREAD, Server, served
from tests.support.digest import Digest
from tests.support.operations import start

Call = Callable[..., TestResponse]

MAKER = Operator("tests")

INVALID = "urn:rowcall:problem:invalid-input"
PROBLEM = "application/problem+json"

UNKNOWN_EFFECT = """
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)
VALUES ('mail:1', %(run_id)s, 1, '', 'unknown') RETURNING id
"""

WRITTEN_FILE = """
INSERT INTO rowcall.generated_files (type, date, key, run_id, lease_no, content_hash, state, applied_at)
VALUES ('report', '2026-03-23', 'csv', %(run_id)s, 1, '', 'applied', now()) RETURNING id
"""


@dataclass(frozen=True)
class There:
    """The rows in a module's database, by the name of the path parameter."""

    parts: Mapping[str, object]

    def path(self, described: str) -> str:
        """Fill in a path such as /v1/runs/{run_id}."""
        return described.format(**self.parts)


@pytest.fixture(scope="module")
def app(module_url: str) -> Iterator[flask.Flask]:
    """Yield the application as gunicorn loads it, without rate limits."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ROWCALL_RATE_LIMIT", "0")
        app = create_app(module_url)
    yield app
    app.extensions["database"].dispose()
    logs.use(logs.Log())


@pytest.fixture(scope="module")
def keys(module_url: str) -> dict[str, str]:
    """Return a key for each scope."""
    with database.transaction(module_url) as connection:
        keys = {scope: api_keys.create_key(connection, f"test {scope}", [scope], MAKER) for scope in api_keys.SCOPES}
        # Retrying, showing and cloning runs needs three scopes.
        keys["steer"] = api_keys.create_key(connection, "test steer", ["operate", "enqueue", "read"], MAKER)
        return keys


@pytest.fixture(scope="module")
def actors(keys: dict[str, str]) -> dict[str, str]:
    """Return the owner of each scope's key, as in `created_by` and the audit log."""
    return {scope: f"api:test {scope} ({key.split('_')[1]})" for scope, key in keys.items()}


@pytest.fixture
def call(app: flask.Flask, keys: dict[str, str]) -> Call:
    """Return a function that makes a request with the admin's key, or with another scope's."""
    client = app.test_client()

    def request(method: str, path: str, scope: str = "admin", **options: Any) -> TestResponse:
        headers = {"Authorization": f"Bearer {keys[scope]}", **options.pop("headers", {})}
        return client.open(path, method=method, headers=headers, **options)

    return request


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, module_url: str, keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Yield a server with one thread, started by the module's code SMALL."""
    command = [sys.executable, "-P", "-c", request.module.SMALL]
    with served({**ONE_THREAD, "DATABASE_URL": module_url}, tmp_path_factory.mktemp("api"), command) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    """Yield a stack that closes the test's connections."""
    with ExitStack() as clients:
        yield clients


@pytest.fixture(scope="module")
def there(module_url: str) -> There:
    """Insert one row of each kind that a route can show or change."""
    with database.transaction(module_url) as connection:
        run_id = queue.enqueue(connection, "noop", {"user_id": 1}, key="mine").run_id
        content = definitions.checked("nightly", {"job_type": "noop", "schedule": "@daily"}, catalogue())
        definitions.put(connection, "nightly", content, catalogue(), "api", MAKER)
        effect_id = database.fetch_value(connection, UNKNOWN_EFFECT, {"run_id": run_id})
        file_id = database.fetch_value(connection, WRITTEN_FILE, {"run_id": run_id})
        operation_id = start(connection, Action.RETRY, status=(Status.DEAD,))
        key_id = api_keys.id_of(connection, api_keys.create_key(connection, "spare", ["read"], MAKER))
    ids = {"run_id": run_id, "effect_id": effect_id, "file_id": file_id, "key_id": key_id, "operation_id": operation_id}
    return There({**ids, "name": "nightly", "kind": "sent_emails"})


@pytest.fixture(scope="module")
def digest(module_url: str, keys: dict[str, str], there: There) -> Iterator[Digest]:
    """Yield a digest of the module's database."""
    connection = database.connect(module_url)
    yield Digest(connection)
    connection.close()


@pytest.fixture
def refused(call: Call, digest: Digest) -> Call:
    """Return a function that makes a request, and asserts that it is refused with a problem and changes nothing."""

    def request(method: str, path: str, status: int, field: str | None = None, **options: Any) -> TestResponse:
        before = digest()
        answer = call(method, path, **options)
        assert digest() == before, "a refused request changed something"
        assert (answer.status_code, answer.mimetype) == (status, PROBLEM), answer.get_data(as_text=True)
        problem = told(answer)
        assert problem["type"].startswith("urn:rowcall:problem:")
        assert problem["status"] == status
        assert "Traceback" not in str(problem)
        if field is not None:
            assert field in {*named(answer), *(error["pointer"] for error in problem["errors"])}, problem
        return answer

    return request


def told(answer: TestResponse) -> dict[str, Any]:
    """Return the JSON object in the response."""
    assert isinstance(answer.json, dict)
    return answer.json


def invalid(answer: TestResponse) -> dict[str, str]:
    """Return the invalid values of a refused request: pointer -> detail."""
    assert (answer.status_code, told(answer)["type"]) == (422, INVALID), told(answer)
    return {error["pointer"]: error["detail"] for error in told(answer)["errors"]}


def named(answer: TestResponse) -> set[str]:
    """Return all names in the paths of the invalid values."""
    return {name for error in told(answer)["errors"] for name in error["pointer"].split("/")[1:]}


def fields_of(answer: TestResponse) -> set[str]:
    """Return the fields that have an invalid value, or contain one; the whole is an empty name."""
    return {error["pointer"].split("/")[1] if error["pointer"] else "" for error in told(answer)["errors"]}


def let_nobody_in(url: str) -> None:
    """Refuse new connections to a test's database, and end the present ones."""
    name = url.rsplit("/", 1)[1]
    with database.transaction(url.rsplit("/", 1)[0] + "/rowcall") as connection:
        connection.autocommit = True
        database.fetch_all(connection, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        database.fetch_all(
            connection, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
