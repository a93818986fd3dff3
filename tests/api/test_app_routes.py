"""An app's own routes have the same keys, checks and problem documents as Rowcall's, and are in the same document."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import flask
import psycopg2
import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import DeclarationError
from rowcall.job_types import catalogue
from rowcall_api.app import create_app
from rowcall_api.app_routes import transaction
from tests.api.conftest import PROBLEM, Call, invalid, told
from tests.support.processes import APPS


@pytest.fixture
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to the database that the routes read."""
    with database.transaction(module_url) as connection:
        connection.autocommit = True
        yield connection


@pytest.fixture(scope="module", autouse=True)
def shop() -> Iterator[None]:
    """Make the shop the app of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROWCALL_APP", "shop")
        patch.syspath_prepend(APPS)
        catalogue.cache_clear()
        yield
    catalogue.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def test_a_route_enqueues_once_under_the_business_fact_and_answers_as_rowcalls_own_do(call: Call) -> None:
    accepted, again = (call("POST", "/v1/orders/7/pack") for _ in range(2))
    assert (accepted.status_code, told(accepted)["job_type"]) == (202, "shop_pack")
    assert told(accepted)["natural_key"] == "pack:7"
    assert (again.status_code, again.headers["Idempotent-Replayed"], again.json) == (200, "true", accepted.json)
    assert call("GET", accepted.headers["Location"]).json == accepted.json


def test_a_route_reads_the_database_in_a_transaction_of_the_api(call: Call) -> None:
    assert told(call("GET", "/v1/orders/8", scope="read")) == {"shelf": 7}


def test_a_route_finds_the_apps_own_tables_by_the_search_path_of_the_database(
    app: flask.Flask, rows: PgConnection
) -> None:
    fetch_all(rows, "CREATE TABLE public.shelves AS SELECT 7 AS shelf")
    with app.app_context(), transaction() as connection:
        assert connection.exec_driver_sql("SELECT shelf FROM shelves").scalar() == 7


def test_an_error_of_the_apps_own_connection_stays_its_own(app: flask.Flask) -> None:
    with app.app_context(), pytest.raises(psycopg2.OperationalError, match="refused"), transaction():
        psycopg2.connect("postgresql://127.0.0.1:1/elsewhere")


def test_what_a_route_sets_in_its_session_ends_with_its_transaction(app: flask.Flask, call: Call) -> None:
    found = []
    with app.app_context():
        for _ in range(2):
            with transaction() as connection:
                found.append(connection.exec_driver_sql("SHOW default_transaction_read_only").scalar())
                connection.exec_driver_sql("SET default_transaction_read_only = on")
    assert found == ["off", "off"]
    assert call("POST", "/v1/orders/7/pack").status_code in (200, 202)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/orders/7/pack"),
        ("GET", "/v1/orders/8"),
        ("POST", "/counter/bell"),
        ("GET", "/counter/till"),
        ("DELETE", "/counter/till"),
        # A method that the route does not have tells a caller without a key nothing either.
        ("PATCH", "/counter/bell"),
    ],
)
def test_a_route_asks_for_a_key_wherever_it_lies(app: flask.Flask, method: str, path: str) -> None:
    refused = app.test_client().open(path, method=method, data=b"\0")
    assert (refused.status_code, refused.mimetype) == (401, PROBLEM)
    assert refused.headers["WWW-Authenticate"] == "Bearer"


def test_another_api_of_the_same_process_describes_none_of_the_apps_schemas(
    app: flask.Flask, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Shelf" in told(app.test_client().get("/openapi.json"))["components"]["schemas"]
    monkeypatch.delenv("ROWCALL_APP")
    catalogue.cache_clear()
    other = create_app(module_url)
    other.extensions["database"].dispose()
    catalogue.cache_clear()
    assert "Shelf" not in told(other.test_client().get("/openapi.json"))["components"]["schemas"]


@pytest.mark.parametrize(
    ("method", "path", "scope", "status"),
    [
        ("POST", "/v1/orders/7/pack", "read", 403),
        ("GET", "/v1/orders/8", "enqueue", 403),
        ("GET", "/counter/till", "read", 200),
        ("GET", "/counter/till", "operate", 403),
        ("DELETE", "/counter/till", "operate", 200),
        ("DELETE", "/counter/till", "read", 403),
        ("HEAD", "/counter/till", "read", 200),
    ],
)
def test_a_key_needs_the_scope_that_the_route_names(
    call: Call, method: str, path: str, scope: str, status: int
) -> None:
    assert call(method, path, scope=scope).status_code == status


@pytest.mark.parametrize(("scope", "status"), [("enqueue", 403), ("read", 403), ("operate", 403), ("admin", 200)])
def test_a_route_that_names_no_scope_is_the_admins(call: Call, scope: str, status: int) -> None:
    assert call("POST", "/counter/bell", scope=scope, json={"shelf": 1}).status_code == status


@pytest.mark.parametrize(
    ("options", "status", "field"),
    [
        ({"data": b"{", "content_type": "application/json"}, 400, None),
        ({"data": b"[" * 40, "content_type": "application/json"}, 400, None),
        ({"data": b"{}", "content_type": "text/plain"}, 415, None),
        ({"data": b"x" * 300_000, "content_type": "application/json"}, 413, None),
        ({"json": {"shelf": 1}, "headers": {"Accept": "text/html"}}, 406, None),
        ({"json": {"shelf": 1}, "query_string": {"shelf": "1"}}, 422, "shelf"),
        ({"json": {"shelf": "\0"}}, 422, "shelf"),
        ({"data": b'{"shelf": 1, "shelf": 2}', "content_type": "application/json"}, 422, "shelf"),
        ({"json": {"shelf": 1, "colour": "red"}}, 422, "colour"),
        ({"json": {}}, 422, "shelf"),
    ],
)
def test_what_is_sent_is_checked_as_for_rowcalls_own_routes(
    call: Call, options: dict[str, object], status: int, field: str | None
) -> None:
    refused = call("POST", "/counter/bell", **options)
    assert (refused.status_code, refused.mimetype) == (status, PROBLEM), refused.text
    assert field is None or f"/{field}" in invalid(refused)


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "detail"),
    [
        ("GET", "/v1/orders/1", 409, "order-sold-out", "order 1 is sold out"),
        ("GET", "/v1/orders/2", 404, "not-found", "there is no order 2"),
        ("GET", "/v1/orders/one", 404, "not-found", "there is nothing at this URL; /docs lists all operations"),
        ("PATCH", "/v1/orders/8", 405, "method-not-allowed", "not allowed"),
        ("PATCH", "/counter/bell", 405, "method-not-allowed", "not allowed"),
    ],
)
def test_errors_are_problem_documents(call: Call, method: str, path: str, status: int, kind: str, detail: str) -> None:
    answer = call(method, path)
    assert (answer.status_code, answer.mimetype) == (status, PROBLEM)
    assert told(answer)["type"] == f"urn:rowcall:problem:{kind}"
    assert detail in told(answer)["detail"]


def test_a_problem_carries_the_fields_that_the_app_named(call: Call) -> None:
    [error] = told(call("GET", "/v1/orders/1"))["errors"]
    assert error == {"in": "path", "pointer": "/order_id", "code": "invalid", "detail": "is sold out"}


def test_a_route_that_breaks_is_a_500_that_tells_nothing_of_its_inside(call: Call) -> None:
    broken = call("GET", "/v1/orders/3")
    assert (broken.status_code, told(broken)["type"]) == (500, "urn:rowcall:problem:internal-error")
    assert "shelf 3" not in broken.text


def test_the_routes_are_described_with_their_schemas_scopes_and_refusals(app: flask.Flask) -> None:
    described = told(app.test_client().get("/openapi.json"))
    packed = described["paths"]["/v1/orders/{order_id}/pack"]["post"]
    assert (packed["operationId"], packed["tags"]) == ("ordersPackOrder", ["orders"])
    assert packed["security"] == [{"key": ["enqueue"]}]
    assert {"200", "202", "401", "403", "404", "422", "429", "503"} <= set(packed["responses"])
    assert described["paths"]["/counter/bell"]["post"]["security"] == [{"key": ["admin"]}]
    till = described["paths"]["/counter/till"]
    assert [till[method]["security"] for method in ("get", "delete")] == [[{"key": ["read"]}], [{"key": ["operate"]}]]
    # A view of several methods has a name for each.
    assert [till[method]["operationId"] for method in ("get", "delete")] == ["getCounterTill", "deleteCounterTill"]
    assert "Shelf" in described["components"]["schemas"]
    assert {"name": "orders", "description": "The shop's orders."} in described["tags"]


def made(folder: Path, patch: pytest.MonkeyPatch, name: str, routes: str | None) -> None:
    """Write an app with this name, and set ROWCALL_APP to it."""
    package = folder / name
    package.mkdir()
    (package / "job_types.py").touch()
    if routes is not None:
        (package / "routes.py").write_text(f"from rowcall_api.app_routes import Blueprint\n{routes}")
    patch.syspath_prepend(folder)
    patch.setenv("ROWCALL_APP", name)
    catalogue.cache_clear()


ROUTE = 'mine = Blueprint("mine", __name__)\n@mine.{method}("{path}")\ndef answer(**_):\n    """Answer."""\n'


@pytest.mark.parametrize(
    ("name", "routes", "complaint"),
    [
        ("apps_name", 'runs = Blueprint("runs", __name__)', "apps_name.routes: the blueprint name 'runs' is taken"),
        (
            "apps_twins",
            'one, other = Blueprint("mine", __name__), Blueprint("mine", __name__)',
            "the blueprint name 'mine' is taken",
        ),
        (
            "apps_plain",
            'import flask\nplain = flask.Blueprint("plain", __name__)',
            "create it with `Blueprint` from rowcall_api.app_routes",
        ),
        *(
            (
                f"apps_path_{number}",
                ROUTE.format(method=method, path=path),
                f"the path {path} of mine.answer clashes",
            )
            for number, (method, path) in enumerate(
                [
                    ("get", "/v1/runs"),
                    ("put", "/v1/runs"),
                    ("get", "/v1/runs/<int:run_id>/notes"),
                    ("get", "/v1/<name>"),
                    ("get", "/v1/<kind>/<name>/pause"),
                    ("get", "/<path:anything>"),
                    ("get", "/docs/mine"),
                    ("get", "/metrics"),
                ]
            )
        ),
    ],
)
def test_what_clashes_with_rowcalls_own_stops_the_start_with_a_sentence(
    module_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, routes: str, complaint: str
) -> None:
    made(tmp_path, monkeypatch, name, routes)
    with pytest.raises(DeclarationError) as refused:
        create_app(module_url)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("apps_runners", "/v1/runners"),
        ("apps_numbers", "/v1/<int:number>"),
        ("apps_document", "/document/<name>"),
        ("apps_root", "/"),
    ],
)
def test_a_path_beside_rowcalls_own_is_free(
    module_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    made(tmp_path, monkeypatch, name, ROUTE.format(method="get", path=path))
    assert path in {rule.rule for rule in create_app(module_url).url_map.iter_rules()}


def test_an_app_without_routes_has_those_of_rowcall(
    module_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, monkeypatch, "apps_bare", None)
    assert "orders" not in create_app(module_url).blueprints


@pytest.mark.parametrize(
    ("name", "routes", "error", "reason"),
    [
        ("apps_lacking", "import no_such_library", ModuleNotFoundError, "No module named 'no_such_library'"),
        ("apps_failing", 'raise RuntimeError("no colour is set")', RuntimeError, "no colour is set"),
    ],
)
def test_routes_that_cannot_be_imported_fail_with_their_own_reason(
    module_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    routes: str,
    error: type[Exception],
    reason: str,
) -> None:
    made(tmp_path, monkeypatch, name, routes)
    with pytest.raises(DeclarationError, match=rf"importing {name}\.routes failed.*{error.__name__}: {reason}"):
        create_app(module_url)
