"""Each list of the API that has pages has one form: `order`, with cursors that belong to it, and `fields`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.base import database
from tests.api.conftest import Call, There, invalid, told

# A few entries of each list, besides those of `there`, two of them at the same time.
FILL = """
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)
SELECT %(run_id)s, number, number, 'fail', 'worker-1' FROM generate_series(11, 15) AS number;
INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
SELECT %(run_id)s, 100 + number, 1, number, now(), 'info', number::text FROM generate_series(1, 5) AS number;
INSERT INTO rowcall.audit_log (who, action, subject) SELECT 'cli:ann', 'pause', 'queue' FROM generate_series(1, 5);
INSERT INTO rowcall.api_keys (name, prefix, secret_sha256, scopes)
SELECT 'order-' || number, 'orders0' || number, '', '{read}' FROM generate_series(1, 5) AS number;
INSERT INTO rowcall.generated_files (type, date, key, run_id, lease_no, content_hash, state, applied_at)
SELECT 'report', '2026-01-01', number::text, %(run_id)s, 1, '', 'applied', now() FROM generate_series(1, 5) AS number;
INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency)
SELECT 'order-' || number, 'here', 1, '1', '{noop}', 4 FROM generate_series(1, 5) AS number;
INSERT INTO rowcall.operations
    (action, filter, status, matched, counted_all, requested_by, key_owner, request_fingerprint)
SELECT 'retry', '{}', 'stopped', 0, true, 'a test', 'app', '' FROM generate_series(1, 5);
INSERT INTO rowcall.operation_refusals (operation_id, run_id, reason)
SELECT %(operation_id)s, 1000 + number, 'no' FROM generate_series(1, 5) AS number;
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, revision)
SELECT id, now() - number * interval '1 day', 'skipped', 1
FROM rowcall.job_definitions, generate_series(1, 5) AS number WHERE name = %(name)s
"""

PAGED = {
    "/v1/runs",
    "/v1/runs/{run_id}/attempts",
    "/v1/runs/{run_id}/effects",
    "/v1/runs/{run_id}/log",
    "/v1/audit",
    "/v1/definitions/{name}/occurrences",
    "/v1/effects",
    "/v1/files",
    "/v1/keys",
    "/v1/operations",
    "/v1/operations/{operation_id}/refusals",
    "/v1/workers",
}


@pytest.fixture(scope="module")
def filled(module_url: str, there: There) -> There:
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, FILL, dict(there.parts))
        database.fetch_all(
            connection, "INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, 4)"
        )
    return there


def pages(call: Call, path: str, order: str, limit: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the items of each page, and follow `next` to the end."""
    cursor = ""
    while cursor is not None:
        page = told(call("GET", f"{path}?order={order}&limit={limit}" + (cursor and f"&cursor={cursor}")))
        yield page["items"]
        cursor = page["next"]


def test_every_list_with_a_limit_has_this_form(app: flask.Flask) -> None:
    paths = told(app.test_client().get("/openapi.json"))["paths"]
    named = {
        path: {parameter["name"] for parameter in operations.get("get", {}).get("parameters", ())}
        for path, operations in paths.items()
    }
    assert {path for path, names in named.items() if {"limit", "cursor"} <= names} == PAGED
    assert {path for path, names in named.items() if "order" in names} == PAGED
    assert {path for path, names in named.items() if "fields" in names} == {*PAGED, "/v1/runs/{run_id}"}


@pytest.mark.parametrize("path", sorted(PAGED))
@pytest.mark.parametrize("limit", [1, 3])
def test_a_list_from_its_other_end_has_the_same_entries_in_the_opposite_order(
    call: Call, filled: There, path: str, limit: int
) -> None:
    asked = filled.path(path)
    falling, rising = (
        [_still(item) for page in pages(call, asked, order, limit) for item in page] for order in ("desc", "asc")
    )
    assert len(falling) >= 5
    assert falling[::-1] == rising


def _still(item: dict[str, Any]) -> dict[str, Any]:
    """Leave out what changes between two requests."""
    return {name: value for name, value in item.items() if name not in ("heartbeat_age_seconds", "last_used_at")}


@pytest.mark.parametrize("path", sorted(PAGED))
def test_a_cursor_belongs_to_one_order(call: Call, filled: There, path: str) -> None:
    asked = filled.path(path)
    cursor = told(call("GET", f"{asked}?order=asc&limit=1"))["next"]
    assert "another order" in invalid(call("GET", f"{asked}?order=desc&limit=1&cursor={cursor}"))["/cursor"]
    assert set(invalid(call("GET", f"{asked}?order=up"))) == {"/order"}


def test_a_cursor_of_effects_belongs_to_their_filters(call: Call, filled: There) -> None:
    cursor = told(call("GET", "/v1/effects?kind=generated_files&limit=1"))["next"]
    for other in ("", "kind=generated_files&state=applied&", "kind=generated_files&run_id=1&"):
        assert "other filters" in invalid(call("GET", f"/v1/effects?{other}limit=1&cursor={cursor}"))["/cursor"]
    assert call("GET", f"/v1/effects?kind=generated_files&limit=1&cursor={cursor}").status_code == 200


# A field of each list's entries, and those that an entry always has.
FIELDS = {
    "/v1/runs": ("status", {"id"}),
    "/v1/runs/{run_id}/attempts": ("worker", {"lease_no"}),
    "/v1/runs/{run_id}/effects": ("state", {"kind", "id"}),
    "/v1/runs/{run_id}/log": ("text", {"line_no"}),
    "/v1/audit": ("who", {"id"}),
    "/v1/definitions/{name}/occurrences": ("outcome", {"nominal_at"}),
    "/v1/effects": ("state", {"kind", "id"}),
    "/v1/files": ("path", {"id"}),
    "/v1/keys": ("name", {"id"}),
    "/v1/operations": ("action", {"id"}),
    "/v1/operations/{operation_id}/refusals": ("reason", {"run_id"}),
    "/v1/workers": ("hostname", {"id"}),
}


@pytest.mark.parametrize("path", sorted(PAGED))
def test_entries_have_only_the_fields_that_are_named_and_what_tells_them_apart(
    app: flask.Flask, call: Call, filled: There, path: str
) -> None:
    named, always = FIELDS[path]
    whole, page = (told(call("GET", f"{filled.path(path)}?limit=5{query}")) for query in ("", f"&fields={named}"))
    assert page["items"] == [{name: item[name] for name in item if name in {named, *always}} for item in whole["items"]]
    assert all({*item} == {named, *always} for item in page["items"])
    described: dict[str, Any] = told(app.test_client().get("/openapi.json"))
    schema = described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    for answer in (whole, page):
        OAS31Validator({**schema, "components": described["components"]}).validate(answer)
    [why] = invalid(call("GET", f"{filled.path(path)}?fields=colour")).values()
    assert named in why
