"""The example's own endpoints: reports, cleanups, charges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall import JobType
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one, fetch_value
from rowcall_example import job_types
from tests.api.conftest import Call, actors, app, call, keys, told

__all__ = ["actors", "app", "call", "keys"]  # fixtures

WEEK = {"from": "2026-03-23", "to": "2026-03-29"}
OTHER_WEEK = {"from": "2026-03-30", "to": "2026-04-05"}

ROWS = """
INSERT INTO example.users (email, name)
SELECT number || '@example.com', 'Somebody' FROM generate_series(1, 3) AS number;
INSERT INTO example.invoices (user_id, number, amount_minor, currency, due_on)
SELECT 1, 'R-' || number, 4900, 'EUR', '2026-03-24' FROM generate_series(1, 3) AS number
"""

# Path, body, and the run that the request creates.
ASKED = [
    (
        "/v1/reports/weekly",
        {"user_id": 1, "date_range": WEEK},
        "send_weekly_report",
        {"user_id": 1, "date_range": WEEK},
        "weekly_report:1:2026-03-23",
    ),
    ("/v1/cleanups", {"day": "2026-03-23"}, "cleanup_nightly", {"day": "2026-03-23"}, "cleanup:2026-03-23"),
    ("/v1/invoices/1/charge", None, "charge_invoice", {"invoice_id": 1}, "invoice_charge:1"),
]


@pytest.fixture(scope="module")
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to a database with three users and three invoices."""
    connection = database.connect(module_url)
    connection.autocommit = True
    fetch_all(connection, ROWS)
    yield connection
    connection.close()


def stored(rows: PgConnection) -> int:
    found: int = fetch_value(rows, "SELECT count(*) FROM rowcall.job_runs")
    return found


@pytest.mark.parametrize(("path", "body", "job_type", "payload", "key"), ASKED)
def test_it_becomes_one_run_under_the_key_of_the_business_fact(
    call: Call,
    actors: dict[str, str],
    rows: PgConnection,
    path: str,
    body: dict[str, Any] | None,
    job_type: str,
    payload: object,
    key: str,
) -> None:
    accepted = call("POST", path, scope="enqueue", json=body)
    assert accepted.status_code == 202
    run = told(call("GET", accepted.headers["Location"]))
    assert run == accepted.json
    assert (run["job_type"], run["payload"], run["natural_key"]) == (job_type, payload, key)
    assert run["created_by"] == actors["enqueue"]
    again = call("POST", path, json=body)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert (again.headers["Location"], again.json) == (accepted.headers["Location"], accepted.json)


@pytest.mark.parametrize(("path", "body", "job_type", "payload", "key"), ASKED)
def test_a_key_that_may_not_read_learns_of_a_fact_only_that_it_has_a_run(
    call: Call, rows: PgConnection, path: str, body: dict[str, Any] | None, job_type: str, payload: object, key: str
) -> None:
    run = told(call("POST", path, json=body))
    again = call("POST", path, scope="enqueue", json=body)
    assert (again.status_code, again.json) == (200, {"id": run["id"], "status": "queued"})


@pytest.mark.parametrize(("path", "body", "job_type", "payload", "key"), ASKED)
def test_a_key_of_the_callers_own_makes_no_second_run_of_the_fact(
    call: Call, rows: PgConnection, path: str, body: dict[str, Any] | None, job_type: str, payload: object, key: str
) -> None:
    own = {"Idempotency-Key": f"mine:{job_type}"}
    run = told(call("POST", path, json=body))
    again = call("POST", path, json=body, headers=own)
    assert (again.status_code, told(again)["id"]) == (200, run["id"])


def test_the_same_fact_is_the_same_run_on_all_routes_and_no_callers_key_can_block_it(
    call: Call, rows: PgConnection
) -> None:
    body = {"user_id": 2, "date_range": WEEK}
    report = call("POST", "/v1/reports/weekly", json=body)
    run = call("POST", "/v1/runs", json={"job_type": "send_weekly_report", "payload": body})
    assert (run.status_code, run.headers["Location"]) == (200, report.headers["Location"])
    key = {"Idempotency-Key": "weekly_report:2:2026-03-23"}
    assert call("POST", "/v1/cleanups", json={"day": "2026-03-24"}, headers=key).status_code == 202
    other = call("POST", "/v1/runs", json={"job_type": "send_weekly_report", "payload": body, "priority": 3})
    assert (other.status_code, told(other)["type"]) == (422, "urn:rowcall:problem:natural-key-conflict")


# A payload for each type of the example that has a natural key.
FACTS: dict[str, dict[str, Any]] = {
    "send_weekly_report": {"user_id": 3, "date_range": WEEK},
    "cleanup_nightly": {"day": "2026-03-25"},
    "send_invoice_reminders": {"day": "2026-03-25"},
    "send_invoice_email": {"invoice_id": 2, "kind": "due"},
    "charge_invoice": {"invoice_id": 2},
    "build_sales_report": {"date": "2026-03-25"},
    "deliver_webhook": {"event_id": "e-1", "url": "https://shop.example/hook", "body": {}},
}


def test_there_is_a_fact_here_for_each_type_that_has_a_natural_key() -> None:
    types = vars(job_types).values()
    assert {one.name for one in types if isinstance(one, JobType) and one.key is not None} == {*FACTS}


@pytest.mark.parametrize(("job_type", "payload"), FACTS.items())
@pytest.mark.parametrize("status", ["succeeded", "dead", "cancelled"])
def test_what_was_done_once_cannot_be_done_again_under_a_fresh_key(
    call: Call, rows: PgConnection, job_type: str, payload: dict[str, Any], status: str
) -> None:
    request = {"job_type": job_type, "payload": payload}
    run = told(call("POST", "/v1/runs", json=request, headers={"Idempotency-Key": f"{job_type} {status} 1"}))
    end = f"UPDATE rowcall.job_runs SET status = '{status}', finished_at = now() WHERE id = {run['id']}"
    fetch_all(rows, end)
    again = call("POST", "/v1/runs", json=request, headers={"Idempotency-Key": f"{job_type} {status} 2"})
    assert (again.status_code, told(again)["id"]) == (200, run["id"])


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/reports/weekly", {"date_range": WEEK}, "user_id"),
        ("/v1/reports/weekly", {"user_id": "1", "date_range": WEEK}, "user_id"),
        ("/v1/reports/weekly", {"user_id": 0, "date_range": WEEK}, "user_id"),
        ("/v1/reports/weekly", {"user_id": 2**63, "date_range": WEEK}, "user_id"),
        ("/v1/reports/weekly", {"user_id": 1}, "date_range"),
        ("/v1/reports/weekly", {"user_id": 1, "date_range": {"from": "2026-03-23"}}, "to"),
        ("/v1/reports/weekly", {"user_id": 1, "date_range": {**WEEK, "to": "2026-03-30"}}, "to"),
        ("/v1/reports/weekly", {"user_id": 1, "date_range": {**WEEK, "from": "9999-12-31"}}, "from"),
        ("/v1/reports/weekly", {"user_id": 1, "date_range": WEEK, "colour": "red"}, "colour"),
        ("/v1/cleanups", {}, "day"),
        ("/v1/cleanups", {"day": "yesterday"}, "day"),
        ("/v1/cleanups", {"day": "1999-12-31"}, "day"),
        ("/v1/cleanups", {"day": "9999-12-31"}, "day"),
        ("/v1/cleanups", {"day": "2026-03-23T00:00:00Z"}, "day"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_stored(
    call: Call, rows: PgConnection, path: str, body: dict[str, Any], field: str
) -> None:
    before = stored(rows)
    refused = call("POST", path, json=body)
    assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
    assert f'/{field}"' in refused.text
    assert stored(rows) == before


def test_a_user_that_does_not_exist_is_a_wrong_field_and_its_key_is_free_afterwards(
    call: Call, rows: PgConnection
) -> None:
    before = stored(rows)
    body = {"user_id": 404, "date_range": WEEK}
    refused = call("POST", "/v1/reports/weekly", json=body)
    assert (refused.status_code, told(refused)["type"]) == (422, "urn:rowcall:problem:user-not-found")
    [error] = told(refused)["errors"]
    assert (error["pointer"], error["detail"]) == ("/user_id", "there is no user 404; correct user_id")
    assert stored(rows) == before
    fetch_all(
        rows,
        "INSERT INTO example.users (id, email, name) OVERRIDING SYSTEM VALUE VALUES (404, 'late@example.com', 'Late')",
    )
    assert call("POST", "/v1/reports/weekly", json=body).status_code == 202


@pytest.mark.parametrize("invoice_id", ["0", "404", str(2**63), "9" * 100, "one"])
def test_an_invoice_that_does_not_exist_is_a_404_and_nothing_stored(
    call: Call, rows: PgConnection, invoice_id: str
) -> None:
    before = stored(rows)
    refused = call("POST", f"/v1/invoices/{invoice_id}/charge")
    assert (refused.status_code, told(refused)["type"]) == (404, "urn:rowcall:problem:not-found")
    assert stored(rows) == before


def test_what_was_accepted_is_answered_again_though_its_user_is_gone(call: Call, rows: PgConnection) -> None:
    body = {"user_id": 3, "date_range": OTHER_WEEK}
    accepted = call("POST", "/v1/reports/weekly", json=body)
    assert accepted.status_code == 202
    assert fetch_one(rows, "DELETE FROM example.users WHERE id = 3 RETURNING id") == {"id": 3}
    again = call("POST", "/v1/reports/weekly", json=body)
    assert (again.status_code, again.json) == (200, accepted.json)


@pytest.mark.parametrize("scope", ["read", "operate"])
def test_a_key_without_the_scope_enqueue_neither_adds_nor_learns_anything(
    call: Call, rows: PgConnection, scope: str
) -> None:
    before = stored(rows)
    unknown = ("/v1/reports/weekly", {"user_id": 405, "date_range": WEEK}), ("/v1/invoices/404/charge", None)
    for path, body in (*(asked[:2] for asked in ASKED), *unknown):
        assert call("POST", path, scope=scope, json=body).status_code == 403
    assert stored(rows) == before
