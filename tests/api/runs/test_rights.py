"""What only an operator's key may request for a run: a new queue, or a priority below zero."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall import queue
from rowcall.access.api_keys import create_key
from rowcall.access.caller import Limits
from rowcall.base import database
from tests.api.conftest import INVALID, MAKER, Call, There, invalid, told

pytestmark = pytest.mark.usefixtures("example_app")


def asked(**more: Any) -> dict[str, Any]:
    return {"json": {"job_type": "noop", **more}}


def test_a_key_that_only_enqueues_names_no_queue_that_nobody_made(refused: Call) -> None:
    answer = refused("POST", "/v1/runs", 422, "queue", scope="enqueue", **asked(queue="invented"))
    assert told(answer)["type"] == INVALID
    assert "`rowcall queues resume invented` creates it" in told(answer)["detail"]


@pytest.mark.parametrize("name", ["default", "maintenance"])
def test_it_may_name_the_queue_of_any_job_type(call: Call, name: str) -> None:
    assert call("POST", "/v1/runs", scope="enqueue", **asked(queue=name)).status_code == 202


def test_it_may_name_a_queue_that_an_operator_made(call: Call, module_url: str) -> None:
    with database.transaction(module_url) as connection:
        queue.resume_queue(connection, "mail", MAKER)
    assert call("POST", "/v1/runs", scope="enqueue", **asked(queue="mail")).status_code == 202


@pytest.mark.parametrize("priority", [-1, -32768])
def test_it_may_not_go_before_what_is_urgent(refused: Call, priority: int) -> None:
    answer = refused("POST", "/v1/runs", 403, scope="enqueue", **asked(priority=priority))
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="operate"'
    assert "a priority below zero" in told(answer)["detail"]


def test_it_may_go_behind_others(call: Call) -> None:
    assert call("POST", "/v1/runs", scope="enqueue", **asked(priority=0)).status_code == 202
    assert call("POST", "/v1/runs", scope="enqueue", **asked(priority=7)).status_code == 202


@pytest.mark.parametrize("scopes", [["admin"], ["enqueue", "operate"]])
def test_an_operators_key_may_ask_for_both(
    call: Call, keys: dict[str, str], module_url: str, scopes: list[str]
) -> None:
    with database.transaction(module_url) as connection:
        keys["operators"] = create_key(connection, f"operators {len(scopes)}", scopes, MAKER)
    assert call("POST", "/v1/runs", scope="operators", **asked(queue="invented", priority=-5)).status_code == 202


HOUSEKEEPING = ["prune_runs", "expire_keys"]


@pytest.fixture(scope="module")
def steering(module_url: str, keys: dict[str, str]) -> None:
    """Create a key that may enqueue and operate."""
    with database.transaction(module_url) as connection:
        keys["steering"] = create_key(connection, "steering", ["enqueue", "operate"], MAKER)


@pytest.mark.parametrize("job_type", HOUSEKEEPING)
@pytest.mark.parametrize("scope", ["enqueue", "steering"])
def test_housekeeping_is_an_admins_however_it_is_asked_for(
    call: Call, refused: Call, steering: None, job_type: str, scope: str
) -> None:
    run = told(call("POST", "/v1/runs", json={"job_type": job_type}))
    ways = [("POST", "/v1/runs", {"job_type": job_type})]
    if scope == "steering":
        ways += [
            ("POST", f"/v1/runs/{run['id']}/clone", {}),
            ("PUT", "/v1/definitions/mine", {"job_type": job_type}),
            ("PUT", f"/v1/definitions/{job_type}", {"job_type": job_type, "schedule": "* * * * *"}),
        ]
    for method, path, body in ways:
        answer = refused(method, path, 403, scope=scope, json=body)
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="admin"'


@pytest.mark.parametrize(
    ("job_type", "payload", "field"),
    [
        ("prune_runs", {"keep_days": {"succeeded": 1e-9}}, "succeeded"),
        ("prune_runs", {"types": {"noop": {"dead": 0.5}}}, "types"),
        ("prune_runs", {"keep_occurrences_days": 0.99}, "keep_occurrences_days"),
        ("expire_keys", {"keep_days": 0}, "keep_days"),
        ("expire_keys", {"types": {"noop": 0.9}}, "types"),
    ],
)
def test_nothing_goes_on_the_day_on_which_it_ended(
    refused: Call, job_type: str, payload: dict[str, Any], field: str
) -> None:
    answer = refused("POST", "/v1/runs", 422, "payload", json={"job_type": job_type, "payload": payload})
    [(pointer, detail)] = invalid(answer).items()
    assert field in pointer.split("/")
    assert "from 1 to 3650" in detail


def test_housekeeping_that_is_asked_for_is_audited(call: Call, module_url: str) -> None:
    run = told(call("POST", "/v1/runs", json={"job_type": "prune_runs", "payload": {"archive": True}}))
    with database.transaction(module_url) as connection:
        sql = "SELECT who, action, after FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = %(id)s"
        [row] = database.fetch_all(connection, sql, {"id": run["id"]})
    assert row["action"] == "enqueue"
    assert row["who"].startswith("api:test admin")
    assert row["after"] == {"job_type": "prune_runs", "payload": run["payload"]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/definitions/mine", {"job_type": "noop"}),
        ("POST", "/v1/definitions/nightly/run-now", None),
        ("POST", "/v1/runs/{run_id}/clone", {}),
    ],
)
def test_what_makes_runs_needs_the_scope_that_enqueues(
    refused: Call, there: There, method: str, path: str, body: object
) -> None:
    answer = refused(method, there.path(path), 403, scope="operate", json=body)
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="enqueue"'


@pytest.fixture(scope="module")
def limited(module_url: str, keys: dict[str, str]) -> None:
    """Create a key for two job types in one queue, with all scopes except admin."""
    with database.transaction(module_url) as connection:
        keys["limited"] = create_key(
            connection,
            "limited",
            ["enqueue", "read", "operate"],
            MAKER,
            limits=Limits(["noop", "cleanup_nightly"], ["default"]),
        )


def test_a_key_may_be_limited_to_job_types_and_queues(call: Call, limited: None, there: There) -> None:
    assert call("POST", "/v1/runs", scope="limited", **asked()).status_code == 202
    assert call("POST", there.path("/v1/runs/{run_id}/clone"), scope="limited", json={}).status_code == 202
    assert call("PUT", "/v1/definitions/limited", scope="limited", json={"job_type": "noop"}).status_code == 201
    criteria = {"job_type": "noop", "queue": "default"}
    asked_of_many = {"action": "cancel", "filter": criteria}
    operation = call("POST", "/v1/operations", scope="limited", json=asked_of_many)
    assert operation.status_code == 202
    assert call("POST", f"{operation.headers['Location']}/stop", scope="limited").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/runs", {"job_type": "charge_invoice", "payload": {"invoice_id": 1}}),
        ("POST", "/v1/runs", {"job_type": "noop", "queue": "mail"}),
        ("POST", "/v1/cleanups", {"day": "2026-11-20"}),
        ("PUT", "/v1/definitions/mine", {"job_type": "noop", "queue": "mail"}),
        ("PUT", "/v1/definitions/mine", {"job_type": "refresh_cache", "payload": {"name": "a"}}),
        ("POST", "/v1/runs/{run_id}/clone", {"queue": "mail"}),
        ("POST", "/v1/operations", {"action": "retry", "filter": {"job_type": "charge_invoice", "queue": "default"}}),
        ("POST", "/v1/operations", {"action": "cancel", "filter": {"job_type": "noop"}}),
        ("POST", "/v1/operations", {"action": "cancel", "filter": {}, "all": True}),
        ("POST", "/v1/operations/preview", {"action": "cancel", "filter": {"job_type": "noop"}}),
        ("POST", "/v1/operations/{operation_id}/stop", None),
        ("POST", "/v1/operations/{operation_id}/continue", None),
        ("POST", "/v1/runs/{other_id}/cancel", None),
        ("POST", "/v1/runs/{other_id}/run-now", None),
        ("POST", "/v1/runs/{other_id}/clone", {"queue": "default"}),
    ],
)
def test_a_limited_key_reaches_nothing_beyond(
    refused: Call, limited: None, there: There, module_url: str, method: str, path: str, body: object
) -> None:
    with database.transaction(module_url) as connection:
        other = queue.enqueue(connection, "cleanup_nightly", {"day": "2026-11-20"}).run_id
    answer = refused(method, path.format(**there.parts, other_id=other), 403, scope="limited", json=body)
    assert "this key is limited to the" in told(answer)["detail"]


def test_a_limited_key_that_may_not_read_cannot_tell_what_is_beyond_from_what_is_not_there(
    refused: Call, there: There, keys: dict[str, str], module_url: str
) -> None:
    with database.transaction(module_url) as connection:
        limits = Limits(["noop"], ["default"])
        keys["blind"] = create_key(connection, "blind", ["enqueue", "operate"], MAKER, limits=limits)
        of_another_type = queue.enqueue(connection, "cleanup_nightly", {"day": "2026-11-21"}).run_id
        in_another_queue = queue.enqueue(connection, "noop", {}, queue="mail").run_id
    for action in ("cancel", "retry", "run-now", "clone"):
        beyond, _, missing = answers = [
            told(refused("POST", f"/v1/runs/{run_id}/{action}", 403, scope="blind"))
            for run_id in (of_another_type, in_another_queue, 2**40)
        ]
        assert answers == [missing] * 3
    assert "this key is limited to the job types noop and the queues default" in missing["detail"]
    missing = told(refused("POST", "/v1/effects/sent_emails/999/resolve", 403, scope="blind", json={"happened": True}))
    assert missing == beyond
    for operation_id in (there.parts["operation_id"], 2**40):
        assert told(refused("POST", f"/v1/operations/{operation_id}/stop", 403, scope="blind")) == beyond


CHANGES = [("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")]


@pytest.mark.parametrize(("method", "end"), CHANGES)
def test_a_limited_key_changes_no_definition_beyond(
    call: Call, refused: Call, limited: None, method: str, end: str
) -> None:
    content = {"job_type": "charge_invoice", "payload": {"invoice_id": 16}}
    call("PUT", "/v1/definitions/charges", json=content)
    answer = refused(method, f"/v1/definitions/charges{end}", 403, scope="limited")
    assert "this key is limited to the" in told(answer)["detail"]
    refused("PUT", "/v1/definitions/charges", 403, scope="limited", json={"job_type": "noop"})


@pytest.mark.parametrize(("method", "end"), CHANGES)
def test_only_an_admin_keeps_housekeeping_away(
    call: Call, refused: Call, steering: None, method: str, end: str
) -> None:
    call("PUT", "/v1/definitions/prune_runs", json={"job_type": "prune_runs", "schedule": "@daily"})
    refused(method, f"/v1/definitions/prune_runs{end}", 403, scope="steering")
    refused("PUT", "/v1/definitions/prune_runs", 403, scope="steering", json={"job_type": "noop"})


def test_an_empty_list_of_statuses_means_every_run_and_must_be_meant(refused: Call) -> None:
    for action in ("retry", "cancel"):
        refused("POST", "/v1/operations", 422, "filter", json={"action": action, "filter": {"status": []}})


def test_a_key_that_may_not_read_learns_nothing_by_steering(call: Call, refused: Call, steering: None) -> None:
    secret = {"job_type": "noop", "payload": {"ssn": "123"}, "run_at": "2100-01-01T00:00:00Z"}
    run = told(call("POST", "/v1/runs", json=secret, headers={"Idempotency-Key": "private"}))
    for action in ("run-now", "cancel", "retry", "clone"):
        answer = call("POST", f"/v1/runs/{run['id']}/{action}", scope="steering")
        assert told(answer).keys() == {"id", "status"}, action
    call("PUT", "/v1/definitions/secret", json={"job_type": "noop", "payload": {"ssn": "123"}})
    for action in ("pause", "resume"):
        answer = call("POST", f"/v1/definitions/secret/{action}", scope="steering")
        assert told(answer).keys() == {"name", "paused_at"}
    for telling in ({"payload": {"ssn": "123"}}, {"key": "private"}, {"error_type": "Down"}, {"created_by": "api:me"}):
        sought = {"action": "cancel", "filter": telling}
        answer = refused("POST", "/v1/operations/preview", 403, scope="steering", json=sought)
        assert "scope `read`" in told(answer)["detail"]


def test_a_fact_that_another_run_holds_is_not_named(refused: Call, call: Call, steering: None) -> None:
    run = told(call("POST", "/v1/runs", json={"job_type": "cleanup_nightly", "payload": {"day": "2031-01-01"}}))
    answer = refused("POST", f"/v1/runs/{run['id']}/clone", 409, scope="steering", json={})
    assert told(answer)["type"] == "urn:rowcall:problem:natural-key-held"
    assert "2031-01-01" not in answer.get_data(as_text=True)
