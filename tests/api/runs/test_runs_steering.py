"""POST /v1/runs/{id}/retry, cancel, run-now, reschedule and clone, and the same commands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import LARGEST_ID, fetch_all
from rowcall.status import BY_EVENT, Event, Status, Who, allowed
from tests.api.conftest import Call, fields_of, invalid, told
from tests.support.processes import rowcall
from tests.support.rows import run_in

ACTIONS = {
    "retry": {Event.RETRY},
    "cancel": {Event.CANCEL, Event.ASK_TO_CANCEL},
    "run-now": {Event.RUN_NOW},
    "reschedule": {Event.RESCHEDULE},
}
# The body of an action that needs one.
BODIES: dict[str, dict[str, Any]] = {"reschedule": {"json": {"run_at": "2040-01-01T00:00:00Z"}}}
PRUNED = {"pruned_at": "now()"}


def made(url: str, status: Status, **columns: str) -> int:
    with database.transaction(url) as connection:
        run_id: int = run_in(connection, status, **columns)["id"]
    return run_id


def state(url: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return everything that these could change."""
    with database.transaction(url) as connection:
        runs = fetch_all(connection, "SELECT * FROM rowcall.job_runs ORDER BY id")
        return runs, fetch_all(connection, "SELECT * FROM rowcall.audit_log ORDER BY id")


def audited(url: str, run_id: int) -> list[dict[str, Any]]:
    with database.transaction(url) as connection:
        sql = "SELECT * FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = %(run_id)s ORDER BY id"
        return fetch_all(connection, sql, {"run_id": run_id})


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_status_either_allows_an_action_or_tells_what_it_allows(
    call: Call, actors: dict[str, str], module_url: str, action: str, status: Status
) -> None:
    run_id = made(module_url, status)
    before = state(module_url)
    options = {"headers": {"X-Request-Id": "request-7"}, **BODIES.get(action, {})}
    answer = call("POST", f"/v1/runs/{run_id}/{action}", scope="steer", **options)
    happened = [event for event in ACTIONS[action] if status in BY_EVENT[event].sources]
    if happened:
        assert answer.status_code == 200
        assert told(answer) == told(call("GET", f"/v1/runs/{run_id}"))
        assert told(answer)["status"] in BY_EVENT[happened[0]].targets
        [row] = audited(module_url, run_id)
        assert (row["who"], row["action"], row["request_id"]) == (actors["steer"], happened[0], "request-7")
        assert (row["before"]["status"], row["after"]["status"]) == (status, told(answer)["status"])
    else:
        assert (answer.status_code, answer.mimetype) == (409, "application/problem+json")
        refusal = told(answer)
        assert (refusal["current_status"], refusal["allowed_events"]) == (status, [*allowed(status, Who.OPERATOR)])
        assert state(module_url) == before


def test_a_waiting_run_is_rescheduled(call: Call, module_url: str) -> None:
    path = f"/v1/runs/{made(module_url, Status.FAILED)}"
    waiting = told(call("POST", f"{path}/reschedule", json={"run_at": "2040-01-01T02:00:00+02:00"}))
    assert (waiting["status"], waiting["run_at"], waiting["attempts"]) == ("queued", "2040-01-01T00:00:00+00:00", 2)
    for body in ({}, {"run_at": None}, {"run_at": "2040-01-01"}, {"run_at": "1999-01-01T00:00:00Z"}):
        assert list(invalid(call("POST", f"{path}/reschedule", json=body))) == ["/run_at"]
    assert told(call("GET", path)) == waiting


def test_a_running_run_is_ended_by_force_over_its_workers_head(call: Call, module_url: str) -> None:
    run_id = made(module_url, Status.RUNNING)
    ended = told(call("POST", f"/v1/runs/{run_id}/cancel", json={"force": True}))
    assert (ended["status"], ended["locked_by"]) == ("cancelled", None)
    assert [row["action"] for row in audited(module_url, run_id)] == ["force cancel"]


@pytest.mark.parametrize("body", [{"force": "yes"}, {"force": 1}, {"force": None}, {"forced": True}, [], None, 7])
def test_a_wrong_body_is_refused_and_nothing_changed(call: Call, module_url: str, body: object) -> None:
    run_id = made(module_url, Status.RUNNING)
    before = state(module_url)
    for action in ("cancel", "clone"):
        refused = call("POST", f"/v1/runs/{run_id}/{action}", data=json.dumps(body), content_type="application/json")
        assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
    assert state(module_url) == before


@pytest.mark.parametrize(
    "options", [{}, {"json": {}}, {"content_type": "application/json"}, {"content_type": "text/plain"}]
)
def test_no_body_is_one_without_fields(call: Call, module_url: str, options: dict[str, Any]) -> None:
    assert call("POST", f"/v1/runs/{made(module_url, Status.QUEUED)}/cancel", **options).status_code == 200


@pytest.mark.parametrize(
    ("action", "status"), [("retry", Status.DEAD), ("cancel", Status.QUEUED), ("clone", Status.DEAD)]
)
def test_who_acts_on_what_is_no_longer_so_is_told_the_current_etag_and_changes_nothing(
    call: Call, module_url: str, action: str, status: Status
) -> None:
    path = f"/v1/runs/{made(module_url, status)}"
    tag = call("GET", path).headers["ETag"]
    before = state(module_url)
    for stale in ('"other"', f"W/{tag}", '""'):
        refused = call("POST", f"{path}/{action}", headers={"If-Match": stale})
        assert (refused.status_code, refused.mimetype) == (412, "application/problem+json")
        assert (refused.headers["ETag"], told(refused)["current_etag"]) == (tag, tag)
    unreadable = call("POST", f"{path}/{action}", headers={"If-Match": tag.strip('"')})
    assert list(invalid(unreadable)) == ["/If-Match"]
    assert state(module_url) == before
    done = call("POST", f"{path}/{action}", headers={"If-Match": f'"other", {tag}'})
    assert done.status_code in (200, 202)


def test_an_answer_carries_the_etag_for_the_next_step(call: Call, module_url: str) -> None:
    path = f"/v1/runs/{made(module_url, Status.DEAD)}"
    retried = call("POST", f"{path}/retry", headers={"If-Match": "*"})
    assert retried.headers["ETag"] == call("GET", path).headers["ETag"]
    assert call("POST", f"{path}/cancel", headers={"If-Match": retried.headers["ETag"]}).status_code == 200
    assert call("POST", f"{path}/retry", headers={"If-Match": retried.headers["ETag"]}).status_code == 412


@pytest.mark.parametrize("action", ["retry", "run-now", "cancel", "clone"])
def test_a_pruned_run_is_refused_with_what_can_be_done(call: Call, module_url: str, action: str) -> None:
    refused = call("POST", f"/v1/runs/{made(module_url, Status.DEAD, **PRUNED)}/{action}")
    assert (refused.status_code, told(refused)["type"]) == (409, "urn:rowcall:problem:run-pruned")
    assert told(refused)["allowed_events"] == []


@pytest.mark.parametrize("action", ["retry", "run-now", "reschedule", "cancel", "clone"])
def test_only_operators_learn_whether_there_is_a_run_to_steer(call: Call, action: str) -> None:
    options = BODIES.get(action, {})
    for run_id in (999_999, LARGEST_ID):
        assert call("POST", f"/v1/runs/{run_id}/{action}", scope="steer", **options).status_code == 404
        for scope in ("read", "enqueue"):
            assert call("POST", f"/v1/runs/{run_id}/{action}", scope=scope, **options).status_code == 403


def test_a_clone_is_a_run_of_its_own_with_what_is_to_be_other(call: Call, module_url: str) -> None:
    run_id = made(module_url, Status.SUCCEEDED, payload="""'{"a": 1}'""", priority="3")
    cloned = call("POST", f"/v1/runs/{run_id}/clone", scope="steer", json={"payload": {"a": 2}, "queue": "slow"})
    assert cloned.status_code == 202
    run = told(call("GET", cloned.headers["Location"]))
    assert run == told(cloned)
    assert (run["payload"], run["queue"], run["priority"], run["status"]) == ({"a": 2}, "slow", 3, "queued")
    [row] = audited(module_url, run["id"])
    assert (row["before"], row["after"]) == ({"cloned_from": run_id}, {"payload": {"a": 2}, "queue": "slow"})


def test_a_clone_under_a_key_is_made_once(call: Call, module_url: str) -> None:
    path = f"/v1/runs/{made(module_url, Status.DEAD)}/clone"
    key = {"Idempotency-Key": "cloned once"}
    first, again = (call("POST", path, headers=key, json={"priority": 1}) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 200)
    assert (again.headers["Location"], again.headers["Idempotent-Replayed"]) == (first.headers["Location"], "true")
    other = call("POST", path, headers=key)
    assert (other.status_code, told(other)["type"]) == (422, "urn:rowcall:problem:idempotency-key-reused")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"payload": [1]}, "payload"),
        ({"payload": {"a": "\0"}}, "payload"),
        ({"run_at": "2030-01-01T00:00:00"}, "run_at"),
        ({"run_at": "9999-12-31T23:59:59-12:00"}, "run_at"),
        ({"queue": "No Such"}, "queue"),
        ({"priority": 10**30}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"job_type": "noop"}, "job_type"),
    ],
)
def test_what_a_clone_cannot_have_is_named_and_nothing_made(
    call: Call, module_url: str, body: dict[str, Any], field: str
) -> None:
    run_id = made(module_url, Status.DEAD)
    before = state(module_url)
    refused = call("POST", f"/v1/runs/{run_id}/clone", json=body)
    assert refused.status_code == 422
    assert fields_of(refused) == {field}
    assert state(module_url) == before


def test_the_commands_steer_several_runs_and_tell_of_each(module_url: str, environment: dict[str, str]) -> None:
    dead, succeeded, other = (made(module_url, status) for status in (Status.DEAD, Status.SUCCEEDED, Status.DEAD))
    done = rowcall(environment, "runs", "retry", *map(str, (dead, succeeded, other, 999_999)))
    assert done.stdout == f"run {dead} is queued\nrun {other} is queued\n"
    assert done.returncode == 1
    assert f"run {succeeded} has succeeded (lease 3): retry is not allowed; allowed: only a clone" in done.stderr
    assert "there is no run 999999" in done.stderr
    with database.transaction(module_url) as connection:
        assert queue.cancel(connection, dead, Operator("a test"))["status"] == Status.CANCELLED


def test_the_command_clones_with_what_is_to_be_other(module_url: str, environment: dict[str, str]) -> None:
    run_id = str(made(module_url, Status.DEAD))
    asked = ("runs", "clone", run_id, "--payload", '{"a": 2}', "--queue", "slow", "--key", "from the command")
    cloned = json.loads(rowcall(environment, *asked, "--json").stdout)
    assert (cloned["payload"], cloned["queue"], cloned["status"]) == ({"a": 2}, "slow", "queued")
    assert rowcall(environment, *asked).stdout == f"run {cloned['id']} already exists: nothing added\n"
