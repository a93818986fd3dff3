"""/v1/queues: queues with their counts and limits, and an operator's pause, limit and removal of settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.api_keys import create_key
from rowcall.access.caller import Limits
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.base.errors import FilterInvalid
from rowcall.job_types import catalogue
from rowcall.queue.views.stats import queues_page
from rowcall.status import Status
from tests.api.conftest import MAKER, Call, told
from tests.support.rows import live_runs, run_in

COUNTS = ("due", "queued", "running", "failed")


@pytest.fixture(scope="module")
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to a database with live runs in the queue mail."""
    connection = database.connect(module_url)
    connection.autocommit = True
    live_runs(connection, "mail")
    yield connection
    connection.close()


def shown(call: Call, name: str, **options: Any) -> dict[str, Any]:
    return told(call("GET", f"/v1/queues/{name}", **options))


def test_a_queue_is_shown_with_its_settings_and_the_counts_of_its_runs(call: Call, rows: PgConnection) -> None:
    mail = shown(call, "mail", scope="read")
    assert {name: mail[name] for name in COUNTS} == {"due": 1, "queued": 1, "running": 1, "failed": 1}
    assert mail["oldest_due_age_seconds"] >= 7200
    settings = ("paused_at", "max_running", "operator_limit", "declared_limit")
    assert [mail[name] for name in settings] == [None, None, None, None]


def test_the_list_has_every_queue_with_runs_settings_or_a_job_type_as_it_is_shown_alone(
    call: Call, rows: PgConnection
) -> None:
    call("POST", "/v1/queues/idle/pause")
    listed = told(call("GET", "/v1/queues", scope="read"))
    names = [item["name"] for item in listed["items"]]
    assert names == sorted(names)
    assert {*names} >= {"mail", "idle", *catalogue().queues}
    assert listed["next"] is None
    for item in listed["items"]:
        one = shown(call, item["name"])
        assert {**one, "oldest_due_age_seconds": 0} == {**item, "oldest_due_age_seconds": 0}


def test_a_list_ends_by_its_bytes_and_goes_on_at_its_cursor(rows: PgConnection) -> None:
    queue.pause_queue(rows, "idle", MAKER)
    seen, cursor = [], None
    while True:
        page, cursor = queues_page(rows, ["default"], {}, cursor, page_bytes=1)
        seen += [row["name"] for row in page]
        assert len(page) == 1
        if cursor is None:
            break
    assert {*seen} >= {"default", "idle", "mail"}
    assert seen == sorted({*seen})


@pytest.mark.parametrize("cursor", ["", "x", "AAAAAAAA", "bWFpbA", "ü"])
def test_a_cursor_of_another_list_is_refused(rows: PgConnection, cursor: str) -> None:
    with pytest.raises(FilterInvalid, match=r"^cursor: (is not a cursor|belongs to another list, or to this one)"):
        queues_page(rows, [], {}, cursor)


def test_the_lower_of_the_operators_and_the_declared_limit_holds(rows: PgConnection) -> None:
    for operators, both in ((5, 2), (1, 1), (None, 2)):
        queue.limit_queue(rows, "reports", operators, MAKER)
        [row] = [row for row in queues_page(rows, [], {"reports": 2})[0] if row["name"] == "reports"]
        assert (row["max_running"], row["operator_limit"], row["declared_limit"]) == (both, operators, 2)


def test_a_paused_queue_is_paused_until_it_is_resumed(call: Call, rows: PgConnection) -> None:
    paused = told(call("POST", "/v1/queues/mail/pause", scope="steer"))
    assert paused["paused_at"]
    assert shown(call, "mail")["paused_at"] == paused["paused_at"]
    assert told(call("POST", "/v1/queues/mail/pause"))["paused_at"] == paused["paused_at"]
    assert told(call("POST", "/v1/queues/mail/resume", scope="steer"))["paused_at"] is None
    assert shown(call, "mail")["paused_at"] is None


def test_a_queue_is_limited_and_set_free_again(call: Call, rows: PgConnection) -> None:
    assert told(call("PUT", "/v1/queues/mail/limit", json={"max_running": 3}))["operator_limit"] == 3
    assert shown(call, "mail")["max_running"] == 3
    assert told(call("PUT", "/v1/queues/mail/limit", json={"max_running": 0}))["operator_limit"] == 0
    assert told(call("PUT", "/v1/queues/mail/limit", json={"max_running": None}))["operator_limit"] is None


def test_the_settings_of_a_misspelt_queue_are_removed_and_then_it_is_gone(call: Call, refused: Call) -> None:
    call("POST", "/v1/queues/mial/pause")
    assert call("DELETE", "/v1/queues/mial/settings", scope="operate").status_code == 204
    refused("GET", "/v1/queues/mial", 404)
    again = refused("DELETE", "/v1/queues/mial/settings", 404)
    assert "queue 'mial' has no settings to remove" in told(again)["detail"]


def test_the_limit_of_a_queue_whose_runs_count_against_it_is_not_removed(
    call: Call, refused: Call, rows: PgConnection
) -> None:
    call("PUT", "/v1/queues/busy/limit", json={"max_running": 3})
    run = run_in(rows, Status.RUNNING, queue="'busy'")
    fetch_all(rows, "UPDATE rowcall.queues SET holders = ARRAY[%(id)s]::bigint[] WHERE name = 'busy'", run)
    answer = refused("DELETE", "/v1/queues/busy/settings", 409)
    assert told(answer)["type"] == "urn:rowcall:problem:queue-busy"


@pytest.mark.parametrize(
    ("method", "path", "sent", "action"),
    [
        ("POST", "pause", None, "pause"),
        ("POST", "resume", None, "resume"),
        ("PUT", "limit", {"max_running": 7}, "limit"),
        ("DELETE", "settings", None, "remove"),
    ],
)
def test_each_change_is_audited_with_the_request(
    call: Call, actors: dict[str, str], rows: PgConnection, method: str, path: str, sent: object, action: str
) -> None:
    queue.limit_queue(rows, "audited", 3, MAKER)
    call(method, f"/v1/queues/audited/{path}", "steer", json=sent, headers={"X-Request-Id": f"queue-{path}"})
    audited = fetch_one(rows, "SELECT * FROM rowcall.audit_log WHERE request_id = %(id)s", {"id": f"queue-{path}"})
    assert audited is not None
    assert (audited["who"], audited["action"], audited["subject"]) == (actors["steer"], action, "queue")
    assert (audited["before"]["name"], audited["before"]["max_running"]) == ("audited", 3)
    assert (audited["after"] or {}).get("max_running") == {"limit": 7, "remove": None}.get(action, 3)


@pytest.mark.parametrize("name", ["E-Mail", "mail%20", "q" * 64, "-"])
def test_no_queue_has_a_name_that_it_cannot_have(refused: Call, name: str) -> None:
    refused("GET", f"/v1/queues/{name}", 404)
    refused("DELETE", f"/v1/queues/{name}/settings", 404)
    refused("POST", f"/v1/queues/{name}/pause", 422, "/name")


@pytest.mark.parametrize("value", [-1, 2**31, 1.5, "3", True, [], "null"])
def test_a_limit_is_a_number_or_null(refused: Call, value: object) -> None:
    refused("PUT", "/v1/queues/mail/limit", 422, "max_running", json={"max_running": value})
    refused("PUT", "/v1/queues/mail/limit", 422, "max_running", json={})


def test_a_key_that_may_not_read_sees_only_the_settings(call: Call, rows: PgConnection) -> None:
    paused = told(call("POST", "/v1/queues/mail/pause", scope="operate"))
    assert set(paused) == {"name", "paused_at", "max_running"}
    call("POST", "/v1/queues/mail/resume")


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "pause", "read"),
        ("PUT", "limit", "read"),
        ("DELETE", "settings", "enqueue"),
        ("POST", "resume", "read"),
    ],
)
def test_only_an_operators_key_changes_a_queue(refused: Call, method: str, path: str, scope: str) -> None:
    refused(method, f"/v1/queues/mail/{path}", 403, scope=scope, json={"max_running": 1})


@pytest.mark.parametrize("limits", [Limits(queues=["reports"]), Limits(["noop"], ["mail"]), Limits(["noop"])])
def test_a_limited_key_changes_only_its_own_queues_and_none_if_it_is_limited_to_job_types(
    call: Call, refused: Call, rows: PgConnection, keys: dict[str, str], limits: Limits
) -> None:
    name = f"limited {limits.queues} {limits.job_types}".translate({ord(letter): "" for letter in "[]'"})
    keys["limited"] = create_key(rows, name, ["operate"], MAKER, limits=limits)
    for method, path in (("POST", "pause"), ("POST", "resume"), ("PUT", "limit"), ("DELETE", "settings")):
        refused(method, f"/v1/queues/mail/{path}", 403, scope="limited", json={"max_running": 1})
    if limits.job_types is None:
        assert call("POST", "/v1/queues/reports/pause", scope="limited").status_code == 200
