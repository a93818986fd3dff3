"""GET /v1/runs/{id}, its attempts, its log and its effects; ETags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.job_types import load_catalogue
from rowcall.queue import Failure, Lease
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.status import Status
from tests.api.conftest import Call, told
from tests.support.housekeeping import Rehearsal
from tests.support.rows import WORKER, definition_of, run_in
from tests.support.run_log import insert_lines

OPERATOR = Operator("a test")
FAILURE = Failure("it broke", "ValueError", "Traceback")


def made(url: str, status: Status, **columns: str) -> int:
    with database.transaction(url) as connection:
        run_id: int = run_in(connection, status, **columns)["id"]
    return run_id


def test_a_run_shows_its_definition_and_what_may_be_done_to_it(call: Call, module_url: str) -> None:
    with database.transaction(module_url) as connection:
        nightly = str(definition_of(connection, "nightly"))
    run = told(call("GET", f"/v1/runs/{made(module_url, Status.QUEUED, definition_id=nightly)}"))
    assert (run["definition"], run["pruned_at"], run["allowed_events"]) == (
        "nightly",
        None,
        ["cancel", "run now", "reschedule"],
    )
    pruned = told(call("GET", f"/v1/runs/{made(module_url, Status.DEAD, pruned_at='now()')}"))
    assert (pruned["definition"], pruned["allowed_events"]) == (None, [])
    assert pruned["pruned_at"] is not None


def test_an_archived_run_is_read_as_before_and_can_only_be_cloned(call: Call, module_url: str) -> None:
    moment = dict.fromkeys(("created_at", "finished_at", "failed_at"), "'2020-05-10 12:00+00'")
    with database.transaction(module_url) as connection:
        run_id = run_in(connection, Status.DEAD, **moment, payload="'{\"user_id\": 1}'", last_error="'it broke'")["id"]
        fetch_all(
            connection,
            f"INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)"
            f" VALUES ({run_id}, 1, 1, 'fail', 'a')",
        )
        insert_lines(connection, run_id, [1])
    addresses = [f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/attempts", f"/v1/runs/{run_id}/log"]
    run, attempts, log = (told(call("GET", address)) for address in addresses)
    with database.transaction(module_url) as connection:
        *_, last = prune_runs(
            load_catalogue(None)["prune_runs"].checked({}), PruneOptions(Rehearsal(connection), to_table=True)
        )
        connection.commit()
    assert last.counts["archived"] == 1
    archived = {**run, "archived": True, "allowed_events": []}
    assert [told(call("GET", address)) for address in addresses] == [archived, attempts, log]
    listed = told(call("GET", "/v1/runs?created_before=2021-01-01T00:00:00Z"))["items"]
    assert [(one["id"], one["archived"]) for one in listed] == [(run_id, True)]
    refused = call("POST", f"/v1/runs/{run_id}/retry")
    assert (refused.status_code, told(refused)["type"]) == (409, "urn:rowcall:problem:run-archived")
    assert told(refused)["detail"] == (
        f"run {run_id} is dead (it is in the archive): retry is not allowed; allowed: only a clone, with `rowcall runs"
        f" clone {run_id}`"
    )
    explained = told(call("GET", f"/v1/runs/{run_id}/explain"))
    assert explained["message"].endswith("; it is in the archive")
    assert call("POST", f"/v1/runs/{run_id}/clone").status_code == 202


def test_a_run_has_all_the_fields_that_are_described_and_no_others(call: Call, module_url: str) -> None:
    described = told(call("GET", "/openapi.json"))["components"]["schemas"]["Run"]
    run = told(call("GET", f"/v1/runs/{made(module_url, Status.RUNNING)}"))
    assert set(described["required"]) == set(described["properties"]) == set(run)


def test_who_has_seen_it_is_told_that_it_is_still_so(call: Call, module_url: str) -> None:
    path = f"/v1/runs/{made(module_url, Status.DEAD)}"
    tag = call("GET", path).headers["ETag"]
    for seen in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        same = call("GET", path, headers={"If-None-Match": seen})
        assert (same.status_code, same.get_data(), same.headers["ETag"]) == (304, b"", tag)
    other = call("GET", path, headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.headers["ETag"]) == (200, tag)


def test_a_running_run_is_always_shown_because_its_progress_changes(call: Call, module_url: str) -> None:
    path = f"/v1/runs/{made(module_url, Status.RUNNING)}"
    shown = call("GET", path, headers={"If-None-Match": call("GET", path).headers["ETag"]})
    assert (shown.status_code, told(shown)["status"]) == (200, "running")


def lease_of(run: dict[str, Any]) -> Lease:
    return Lease(WORKER, run["id"], run["lease_no"])


def heartbeat(connection: PgConnection, run: dict[str, Any]) -> object:
    return queue.heartbeat(connection, {lease_of(run): 9999})


def progress(connection: PgConnection, run: dict[str, Any]) -> object:
    return queue.show_progress(connection, {lease_of(run): '{"share": 0.5}'})


def fail(connection: PgConnection, run: dict[str, Any]) -> object:
    return queue.fail(connection, lease_of(run), FAILURE, delay=30)


def ask_to_cancel(connection: PgConnection, run: dict[str, Any]) -> object:
    return queue.ask_to_cancel(connection, run["id"], OPERATOR)


@pytest.mark.parametrize(
    ("event", "same"), [(heartbeat, True), (progress, True), (fail, False), (ask_to_cancel, False)]
)
def test_an_etag_changes_with_what_steering_depends_on_and_not_with_a_heartbeat(
    call: Call, module_url: str, event: Callable[[PgConnection, dict[str, Any]], object], same: bool
) -> None:
    path = f"/v1/runs/{made(module_url, Status.RUNNING)}"
    before = call("GET", path)
    with database.transaction(module_url) as connection:
        assert event(connection, told(before))
    after = call("GET", path)
    assert told(after) != told(before)
    assert (after.headers["ETag"] == before.headers["ETag"]) is same


def test_a_run_that_waits_has_another_etag_when_it_is_due_at_another_time(call: Call, module_url: str) -> None:
    path = f"/v1/runs/{made(module_url, Status.QUEUED)}"
    before = call("GET", path).headers["ETag"]
    with database.transaction(module_url) as connection:
        queue.run_now(connection, int(path.split("/")[-1]), OPERATOR)
    assert call("GET", path).headers["ETag"] != before


def test_attempts_are_shown_the_first_one_first_a_page_at_a_time(call: Call, module_url: str) -> None:
    run_id = made(module_url, Status.QUEUED)
    sql = """
    INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, error_type, error, stack)
    SELECT %(run_id)s, number, number, 'fail', 'worker-1', 'ValueError', 'it broke', 'Traceback'
    FROM generate_series(1, 3) AS number
    """
    with database.transaction(module_url) as connection:
        fetch_all(connection, sql, {"run_id": run_id})
    path = f"/v1/runs/{run_id}/attempts"
    whole = told(call("GET", path, scope="read"))
    assert ([one["lease_no"] for one in whole["items"]], whole["next"]) == ([1, 2, 3], None)
    assert (whole["items"][0]["error"], whole["items"][0]["stack"]) == ("it broke", "Traceback")
    first = told(call("GET", f"{path}?limit=2"))
    rest = told(call("GET", f"{path}?limit=2&cursor={first['next']}"))
    assert (first["items"] + rest["items"], rest["next"]) == (whole["items"], None)
    other = made(module_url, Status.QUEUED)
    assert call("GET", f"/v1/runs/{other}/attempts?cursor={first['next']}").status_code == 422


def test_the_log_is_shown_the_oldest_line_first_a_page_at_a_time(call: Call, module_url: str) -> None:
    run_id = made(module_url, Status.QUEUED)
    with database.transaction(module_url) as connection:
        insert_lines(connection, run_id, [2, 3, 5], "a \x1b[31mred\u2028 line ")
    path = f"/v1/runs/{run_id}/log"
    whole = told(call("GET", path, scope="read"))
    assert ([one["line_no"] for one in whole["items"]], whole["left_out"], whole["next"]) == ([2, 3, 5], 2, None)
    assert set(whole["items"][0]) == {"line_no", "lease_no", "logged_at", "level", "text"}
    assert whole["items"][0]["text"] == "a \x1b[31mred\u2028 line 2"
    first = told(call("GET", f"{path}?limit=2"))
    rest = told(call("GET", f"{path}?limit=2&cursor={first['next']}"))
    assert (first["items"] + rest["items"], rest["next"]) == (whole["items"], None)
    other = made(module_url, Status.QUEUED)
    assert call("GET", f"/v1/runs/{other}/log?cursor={first['next']}").status_code == 422
    assert told(call("GET", f"/v1/runs/{other}/log")) == {"items": [], "left_out": 0, "next": None}


def test_effects_of_a_run_are_shown(call: Call, module_url: str) -> None:
    run_id = made(module_url, Status.RUNNING)
    sql = """
    INSERT INTO rowcall.delivered_webhooks (event_id, url, content_hash, run_id, lease_no, state)
    VALUES ('event-1', 'https://example.org', 'hash', %(run_id)s, 1, 'intent')
    """
    with database.transaction(module_url) as connection:
        fetch_all(connection, sql, {"run_id": run_id})
    shown = told(call("GET", f"/v1/runs/{run_id}/effects", scope="read"))
    assert shown["next"] is None
    [effect] = shown["items"]
    assert (effect["kind"], effect["key"], effect["state"]) == ("delivered_webhooks", "event-1", "intent")


@pytest.mark.parametrize("what", ["", "/attempts", "/log", "/effects"])
@pytest.mark.parametrize("run_id", ["0", "999999999", "9223372036854775808", "-1", "one"])
def test_of_a_run_that_is_not_there_nothing_is_shown(call: Call, run_id: str, what: str) -> None:
    missing = call("GET", f"/v1/runs/{run_id}{what}")
    assert (missing.status_code, missing.mimetype) == (404, "application/problem+json")


@pytest.mark.parametrize("what", ["", "/attempts", "/log", "/effects"])
def test_only_who_may_read_sees_a_run(call: Call, module_url: str, what: str) -> None:
    run_id = made(module_url, Status.QUEUED)
    assert call("GET", f"/v1/runs/{run_id}{what}", scope="operate").status_code == 403
