"""POST /v1/runs/retry and /v1/runs/cancel, and the same commands: change many runs, selected by filters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.status import Status
from tests.api.conftest import Call, invalid, told
from tests.support.processes import rowcall
from tests.support.rows import run_in


@pytest.fixture
def runs(module_url: str) -> dict[str, int]:
    """Insert one run in each status, and delete all others."""
    with database.transaction(module_url) as connection:
        fetch_all(connection, "DELETE FROM rowcall.job_runs")
        return {str(status): run_in(connection, status, queue=f"'{status}'")["id"] for status in Status}


def statuses(url: str) -> dict[str, str]:
    with database.transaction(url) as connection:
        return {
            row["queue"]: row["status"] for row in fetch_all(connection, "SELECT queue, status FROM rowcall.job_runs")
        }


def test_what_matches_is_retried_and_each_one_audited_under_the_request(
    call: Call, actors: dict[str, str], module_url: str, runs: dict[str, int]
) -> None:
    asked = {"filter": {"status": ["dead"]}}
    done = call("POST", "/v1/runs/retry", scope="operate", json=asked, headers={"X-Request-Id": "many-7"})
    assert done.status_code == 200
    assert told(done) == {
        "matched": 1,
        "changed": 1,
        "refused": 0,
        "ids": [runs["dead"]],
        "more": False,
        "next": None,
        "dry_run": False,
    }
    assert told(call("GET", f"/v1/runs/{runs['dead']}"))["status"] == "queued"
    with database.transaction(module_url) as connection:
        sql = "SELECT who, action, subject_id FROM rowcall.audit_log WHERE request_id = 'many-7'"
        assert [tuple(row.values()) for row in fetch_all(connection, sql)] == [
            (actors["operate"], "retry", runs["dead"])
        ]


def test_all_that_can_be_cancelled_are_and_running_ones_are_asked(
    call: Call, module_url: str, runs: dict[str, int]
) -> None:
    would = told(call("POST", "/v1/runs/cancel", json={"all": True, "dry_run": True}))
    assert (would["matched"], would["changed"], would["dry_run"]) == (3, 0, True)
    assert statuses(module_url) == {status: status for status in runs}
    done = told(call("POST", "/v1/runs/cancel", json={"all": True}))
    assert (done["ids"], done["changed"]) == (would["ids"], 3)
    now = statuses(module_url)
    assert (now["queued"], now["failed"], now["running"]) == ("cancelled", "cancelled", "running")
    assert told(call("GET", f"/v1/runs/{runs['running']}"))["cancel_requested_at"] is not None


def test_a_limit_leaves_the_rest_to_the_next_call(call: Call, runs: dict[str, int]) -> None:
    asked: dict[str, Any] = {"all": True, "limit": 2}
    first = told(call("POST", "/v1/runs/cancel", json=asked))
    assert (first["changed"], first["more"]) == (2, True)
    rest = told(call("POST", "/v1/runs/cancel", json={**asked, "cursor": first["next"]}))
    assert (rest["changed"], rest["more"], rest["next"]) == (1, False, None)


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
        ({"filter": {"payload": [1]}}, "payload"),
        ({"filter": []}, "filter"),
        ({"all": "true"}, "all"),
        ({"all": True, "dry_run": 1}, "dry_run"),
        ({"all": True, "limit": 0}, "limit"),
        ({"all": True, "limit": 1001}, "limit"),
        ({"all": True, "limit": 1.5}, "limit"),
        ({"all": True, "cursor": "nonsense"}, "cursor"),
        ({"all": True, "ids": [1]}, "ids"),
    ],
)
def test_what_cannot_be_asked_is_named_and_nothing_changed(
    call: Call, module_url: str, runs: dict[str, int], body: dict[str, Any], field: str
) -> None:
    for action in ("retry", "cancel"):
        refused = call("POST", f"/v1/runs/{action}", json=body)
        assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
        assert field in json.dumps(invalid(refused))
    assert statuses(module_url) == {status: status for status in runs}


@pytest.mark.parametrize("scope", ["read", "enqueue"])
def test_only_operators_change_many(call: Call, scope: str) -> None:
    for action in ("retry", "cancel"):
        assert call("POST", f"/v1/runs/{action}", scope=scope, json={"all": True}).status_code == 403


def test_the_command_retries_all_that_match_beyond_what_one_call_changes(
    module_url: str, environment: dict[str, str], runs: dict[str, int]
) -> None:
    with database.transaction(module_url) as connection:
        sql = """
        INSERT INTO rowcall.job_runs (job_type, status, failed_at, finished_at, queue)
        SELECT 'noop', 'dead', now(), now(), 'dead' FROM generate_series(1, 1001)
        """
        fetch_all(connection, sql)
    asked = ("runs", "retry", "--status", "dead", "--type", "noop")
    assert rowcall(environment, *asked, "--dry-run").stdout == "1002 match; dry run: nothing was changed\n"
    assert rowcall(environment, *asked, "--limit", "1").stdout == "1 matched, 1 changed\n"
    done = json.loads(rowcall(environment, *asked, "--json").stdout)
    assert (done["matched"], done["changed"], done["refused"], len(done["ids"])) == (1001, 1001, 0, 1001)
    assert statuses(module_url)["dead"] == "queued"


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["retry"], 2, "specify ids, filters such as --status dead, or --all"),
        (["retry", "1", "--status", "dead"], 2, "not both"),
        (["cancel", "--all", "--force"], 2, "needs ids, not a filter"),
        (
            ["retry", "--status", "succeeded"],
            1,
            "a succeeded run does not allow retry; these statuses do: dead, cancelled",
        ),
    ],
)
def test_what_the_command_cannot_do_is_refused(
    module_url: str, environment: dict[str, str], runs: dict[str, int], arguments: list[str], code: int, complaint: str
) -> None:
    refused = rowcall(environment, "runs", *arguments)
    assert (refused.returncode, complaint in refused.stderr) == (code, True), refused.stderr
    assert statuses(module_url) == {status: status for status in runs}


@pytest.mark.parametrize("time", ["2000-01-01T00:00:00+16:00", "9998-12-31T23:59:59-23:59"])
def test_a_time_is_refused_for_many_where_it_is_refused_for_a_list(call: Call, time: str) -> None:
    listed = call("GET", "/v1/runs", query_string={"created_after": time})
    cancelled = call("POST", "/v1/runs/cancel", json={"filter": {"created_after": time}, "dry_run": True})
    assert (listed.status_code, cancelled.status_code) == (422, 422)
    assert "in the years 2000 to 9998" in invalid(listed)["/created_after"]


def test_the_command_says_why_a_run_was_left(module_url: str, environment: dict[str, str]) -> None:
    fact = {"queue": "'facts'", "natural_key": "'fact'", "unique_mode": "'until_failed'"}
    with database.transaction(module_url) as connection:
        left = run_in(connection, Status.DEAD, **fact)["id"]
        holder = run_in(connection, Status.QUEUED, **fact)["id"]
    refused = rowcall(environment, "runs", "retry", "--queue", "facts")
    assert refused.returncode == 1
    assert (
        "1 were not changed, because other transactions have locked or changed them, or other runs hold"
        in refused.stderr
    )
    assert "`rowcall runs retry ID` gives the reason" in refused.stderr
    assert f"run {holder} holds the natural key" in rowcall(environment, "runs", "retry", str(left)).stderr
