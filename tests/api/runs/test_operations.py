"""/v1/operations: preview, start, follow, stop and continue changes to many runs, selected by filters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.status import Status
from tests.api.conftest import UNKNOWN_EFFECT, Call, invalid, told
from tests.support.operations import finish
from tests.support.rows import run_in

DEAD = {"action": "retry", "filter": {"status": ["dead"]}}


@pytest.fixture
def runs(module_url: str) -> dict[str, int]:
    """Insert one run in each status, and delete all other runs and operations."""
    with database.transaction(module_url) as connection:
        fetch_all(connection, "DELETE FROM rowcall.job_runs; DELETE FROM rowcall.operations")
        return {str(status): run_in(connection, status, queue=f"'{status}'")["id"] for status in Status}


def statuses(url: str) -> dict[str, str]:
    """Return the status of each run, by the one in which it was inserted."""
    with database.transaction(url) as connection:
        sql = "SELECT queue, status FROM rowcall.job_runs WHERE queue <> 'maintenance'"
        return {row["queue"]: row["status"] for row in fetch_all(connection, sql)}


def carried_out(url: str, operation_id: int) -> None:
    with database.transaction(url) as connection:
        finish(connection, operation_id)


def started(call: Call, **body: Any) -> int:
    answer = call("POST", "/v1/operations", json=body)
    assert answer.status_code == 202
    operation_id: int = told(answer)["id"]
    return operation_id


def test_a_preview_counts_what_matches_and_changes_nothing(call: Call, module_url: str, runs: dict[str, int]) -> None:
    found = told(call("POST", "/v1/operations/preview", scope="steer", json={"action": "cancel", "all": True}))
    assert (found["matched"], found["counted_all"], found["unresolved"]) == (3, True, None)
    assert {run["id"] for run in found["samples"]} == {runs["queued"], runs["running"], runs["failed"]}
    assert statuses(module_url) == {status: status for status in runs}
    assert told(call("GET", "/v1/operations"))["items"] == []


def test_a_preview_of_a_retry_counts_the_runs_whose_effect_is_unresolved(
    call: Call, module_url: str, runs: dict[str, int]
) -> None:
    with database.transaction(module_url) as connection:
        fetch_all(connection, UNKNOWN_EFFECT, {"run_id": runs["dead"]})
    found = told(call("POST", "/v1/operations/preview", scope="steer", json={"action": "retry", "all": True}))
    assert (found["matched"], found["unresolved"]) == (2, 1)


def test_an_operation_is_accepted_at_once_and_shows_how_far_it_is(
    call: Call, actors: dict[str, str], module_url: str, runs: dict[str, int]
) -> None:
    answer = call("POST", "/v1/operations", scope="steer", json={**DEAD, "reason": "mail is back"})
    operation = told(answer)
    where = f"/v1/operations/{operation['id']}"
    assert (answer.status_code, answer.headers["Location"]) == (202, where)
    assert (operation["status"], operation["matched"], operation["changed"]) == ("running", 1, 0)
    assert (operation["filter"], operation["requested_by"]) == ({"status": ["dead"]}, actors["steer"])
    assert statuses(module_url) == {status: status for status in runs}
    assert told(call("GET", f"/v1/runs/{operation['run_id']}/explain"))["status"] == "queued"
    carried_out(module_url, operation["id"])
    now = told(call("GET", where, scope="read"))
    assert (now["status"], now["changed"], now["refused"]) == ("finished", 1, 0)
    assert told(call("GET", "/v1/operations", scope="read"))["items"] == [now]
    assert statuses(module_url)["dead"] == "queued"
    [row] = told(call("GET", f"/v1/audit?subject=run&subject_id={runs['dead']}"))["items"]
    assert (row["who"], row["action"], row["request_id"]) == (
        actors["steer"],
        "retry",
        f"operation-{operation['id']}",
    )


def test_all_that_can_be_cancelled_are_and_running_ones_are_asked(
    call: Call, module_url: str, runs: dict[str, int]
) -> None:
    carried_out(module_url, started(call, action="cancel", all=True))
    now = statuses(module_url)
    assert (now["queued"], now["failed"], now["running"]) == ("cancelled", "cancelled", "running")
    assert told(call("GET", f"/v1/runs/{runs['running']}"))["cancel_requested_at"] is not None


def test_waiting_runs_are_rescheduled_and_made_due(call: Call, module_url: str, runs: dict[str, int]) -> None:
    for action, more, run_at in (
        ("reschedule", {"run_at": "2040-01-01T00:00:00Z"}, "2040-01-01T00:00:00+00:00"),
        ("run_now", {}, None),
    ):
        carried_out(module_url, started(call, action=action, all=True, **more))
        for status in ("queued", "failed"):
            run = told(call("GET", f"/v1/runs/{runs[status]}"))
            assert run["status"] == "queued"
            assert run["run_at"] == (run_at or run["updated_at"])


def test_a_canary_is_changed_alone_until_an_operator_continues(
    call: Call, module_url: str, runs: dict[str, int]
) -> None:
    operation_id = started(call, action="retry", all=True, canary=True)
    carried_out(module_url, operation_id)
    waiting = told(call("GET", f"/v1/operations/{operation_id}"))
    assert (waiting["status"], waiting["changed"]) == ("waiting", 1)
    assert waiting["canary_run_id"] in runs.values()
    going = told(call("POST", f"/v1/operations/{operation_id}/continue", scope="steer"))
    assert going["status"] == "running"
    stopped = told(call("POST", f"/v1/operations/{operation_id}/stop", scope="steer"))
    assert stopped["status"] == "stopped"
    carried_out(module_url, operation_id)
    assert told(call("GET", f"/v1/operations/{operation_id}")) == stopped


def test_what_the_status_does_not_allow_is_refused_with_what_it_allows(
    call: Call, module_url: str, runs: dict[str, int]
) -> None:
    operation_id = started(call, **DEAD)
    refused = call("POST", f"/v1/operations/{operation_id}/continue")
    assert (refused.status_code, told(refused)["type"]) == (409, "urn:rowcall:problem:operation-refused")
    assert (told(refused)["current_status"], told(refused)["allowed_events"]) == ("running", ["stop"])
    assert call("POST", "/v1/operations/99999/stop").status_code == 404


def test_refusals_are_listed_with_their_reasons(call: Call, module_url: str, runs: dict[str, int]) -> None:
    fact = {"queue": "'facts'", "natural_key": "'fact'", "unique_mode": "'until_failed'"}
    with database.transaction(module_url) as connection:
        left = run_in(connection, Status.DEAD, **fact)["id"]
        holder = run_in(connection, Status.QUEUED, **fact)["id"]
    operation_id = started(call, action="retry", filter={"queue": "facts"})
    carried_out(module_url, operation_id)
    where = f"/v1/operations/{operation_id}/refusals"
    [refusal] = told(call("GET", where))["items"]
    assert (refusal["run_id"], f"run {holder} holds the natural key" in refusal["reason"]) == (left, True)
    assert told(call("GET", f"/v1/operations/{operation_id}"))["refused"] == 1
    assert call("GET", f"{where}?cursor=nonsense").status_code == 422


def test_a_repeated_request_starts_nothing_twice(call: Call, runs: dict[str, int]) -> None:
    once = {"Idempotency-Key": "retry-7"}
    first = call("POST", "/v1/operations", json=DEAD, headers=once)
    again = call("POST", "/v1/operations", json=DEAD, headers=once)
    assert (first.status_code, again.status_code, again.headers["Idempotent-Replayed"]) == (202, 200, "true")
    assert told(again) == told(first)
    other = call("POST", "/v1/operations", json={**DEAD, "max_runs": 1}, headers=once)
    assert (other.status_code, told(other)["type"]) == (422, "urn:rowcall:problem:idempotency-key-reused")
    assert len(told(call("GET", "/v1/operations"))["items"]) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "filter"),
        ({"filter": {}}, "filter"),
        ({"filter": {"payload": {}}, "all": False}, "filter"),
        ({"filter": {"status": ["succeeded"]}}, "status"),
        ({"filter": {"status": ["gone"]}}, "status"),
        ({"filter": {"status": "dead"}}, "status"),
        ({"filter": {"colour": "red"}}, "colour"),
        ({"filter": {"key": "a\0"}}, "key"),
        ({"filter": {"queue": "\ud800"}}, "queue"),
        ({"filter": {"run_after": "2030-01-01T00:00:00"}}, "run_after"),
        ({"filter": {"created_after": "2000-01-01T00:00:00+16:00"}}, "created_after"),
        ({"filter": {"payload": [1]}}, "payload"),
        ({"filter": []}, "filter"),
        ({"all": "true"}, "all"),
        ({"all": True, "max_runs": 0}, "max_runs"),
        ({"all": True, "max_runs": 2**31}, "max_runs"),
        ({"all": True, "max_runs": 1.5}, "max_runs"),
        ({"all": True, "run_at": "2040-01-01T00:00:00Z"}, "run_at"),
        ({"all": True, "run_at": "tomorrow"}, "run_at"),
        ({"all": True, "action": "reschedule"}, "run_at"),
        ({"all": True, "action": "delete"}, "action"),
        ({"all": True, "ids": [1]}, "ids"),
    ],
)
def test_what_cannot_be_asked_is_named_and_nothing_changed(
    call: Call, module_url: str, runs: dict[str, int], body: dict[str, Any], field: str
) -> None:
    for path in ("/v1/operations", "/v1/operations/preview"):
        refused = call("POST", path, json={"action": "cancel", **body})
        assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
        assert field in json.dumps(invalid(refused))
    assert told(call("GET", "/v1/operations"))["items"] == []


@pytest.mark.parametrize("more", [{"canary": 1}, {"reason": ""}, {"reason": "a\0"}, {"reason": "a" * 501}])
def test_an_option_that_cannot_be_used_is_named(call: Call, runs: dict[str, int], more: dict[str, Any]) -> None:
    refused = call("POST", "/v1/operations", json={**DEAD, **more})
    assert [*invalid(refused)] == [f"/{name}" for name in more]


@pytest.mark.parametrize("scope", ["read", "enqueue"])
def test_only_operators_change_many(call: Call, runs: dict[str, int], scope: str) -> None:
    operation_id = started(call, **DEAD)
    for path in ("", "/preview", f"/{operation_id}/stop", f"/{operation_id}/continue"):
        assert call("POST", f"/v1/operations{path}", scope=scope, json=DEAD).status_code == 403


def test_an_operator_who_may_not_read_sees_the_operation_it_starts_and_the_ids_of_runs(
    call: Call, runs: dict[str, int]
) -> None:
    operation_id = started(call, **DEAD)
    found = told(call("POST", "/v1/operations/preview", scope="operate", json=DEAD))
    assert found["samples"] == [{"id": runs["dead"], "status": "dead"}]
    stopped = told(call("POST", f"/v1/operations/{operation_id}/stop", scope="operate"))
    assert stopped == {"id": operation_id, "status": "stopped"}
    assert call("GET", f"/v1/operations/{operation_id}", scope="operate").status_code == 403
