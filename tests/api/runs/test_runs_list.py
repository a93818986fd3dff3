"""GET /v1/runs and `rowcall runs list`: filters, pages, counts and refusals."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.views import lists
from rowcall.status import Status
from tests.api.conftest import Call, fields_of, invalid, told
from tests.support.processes import rowcall
from tests.support.rows import run_in


@pytest.fixture
def runs(module_url: str) -> list[int]:
    """Insert six runs, the oldest first: queued ones in two queues alternately, and then a dead one."""
    with database.transaction(module_url) as connection:
        fetch_all(connection, "DELETE FROM rowcall.job_runs")
        return [one(connection, number) for number in range(6)]


def one(connection: PgConnection, number: int) -> int:
    columns = {"created_at": f"now() - interval '1 hour' * {6 - number}", "queue": "'mail'" if number % 2 else "'web'"}
    columns |= {"payload": f"""'{{"number": {number}}}'"""}
    status = Status.DEAD if number == 5 else Status.QUEUED
    columns |= {"failed_at": "now()", "error_type": "'ValueError'"} if status is Status.DEAD else {}
    run_id: int = run_in(connection, status, **columns)["id"]
    return run_id


def listed(call: Call, query: str) -> dict[str, Any]:
    answer = call("GET", f"/v1/runs?{query}", scope="read")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return told(answer)


def ids(page: dict[str, Any]) -> list[int]:
    return [run["id"] for run in page["items"]]


def test_a_list_shows_whole_runs_the_newest_first(call: Call, runs: list[int]) -> None:
    page = listed(call, "include=payload,result")
    assert (ids(page), page["next"]) == (runs[::-1], None)
    assert page["items"][0] == told(call("GET", f"/v1/runs/{runs[-1]}"))


@pytest.mark.parametrize("limit", [1, 2, 4, 6])
def test_pages_follow_each_other_to_the_end(call: Call, runs: list[int], limit: int) -> None:
    seen, cursor = [], ""
    while cursor is not None:
        page = listed(call, urlencode({"limit": limit} | ({"cursor": cursor} if cursor else {})))
        seen += ids(page)
        cursor = page["next"]
    assert seen == runs[::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=dead", [5]),
        ("status=dead&status=queued&queue=mail", [5, 3, 1]),
        ("status=dead,queued&queue=mail", [5, 3, 1]),
        ("queue=web", [4, 2, 0]),
        ("error_type=ValueError", [5]),
        ("job_type=noop&definition=none", []),
        ("created_by=nobody", []),
        ("key=none", []),
        (urlencode({"payload": '{"number": 2}'}), [2]),
        (urlencode({"payload": "{}"}), [5, 4, 3, 2, 1, 0]),
        ("created_after=2100-01-01T00:00:00Z", []),
        ("finished_before=2100-01-01T00:00:00Z", [5]),
        ("run_after=2000-01-01T00:00:00Z&run_before=2100-01-01T00:00:00%2B02:00", [5, 4, 3, 2, 1, 0]),
    ],
)
def test_filters_let_through_what_is_asked_for(call: Call, runs: list[int], query: str, found: list[int]) -> None:
    assert ids(listed(call, query)) == [runs[number] for number in found]


def test_a_count_is_told_where_it_is_asked_for(call: Call, runs: list[int]) -> None:
    counted = listed(call, "queue=mail&limit=1&count=true")
    assert (len(counted["items"]), counted["count"]) == (1, {"value": 3, "capped": False})
    assert "count" not in listed(call, "queue=mail&count=false")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("count=perhaps", "count"),
        ("status=gone", "status"),
        ("status=dead,", "status"),
        ("status=", "status"),
        ("colour=red", "colour"),
        ("created_after=2030-01-01T00:00:00", "created_after"),
        ("created_after=infinity", "created_after"),
        ("run_before=294276-12-31T00:00:00Z", "run_before"),
        ("finished_after=9999-12-31T23:59:59-12:00", "finished_after"),
        ("finished_before=0001-01-01T00:00:00Z", "finished_before"),
        ("payload=[1]", "payload"),
        ("payload=", "payload"),
        ("payload={", "payload"),
        (urlencode({"payload": '{"a": NaN}'}), "payload"),
        (urlencode({"payload": '{"a": 1e999}'}), "payload"),
        (urlencode({"payload": '{"a": "\\u0000"}'}), "payload"),
        (urlencode({"payload": '{"a": "\\ud800"}'}), "payload"),
        (urlencode({"payload": '{"a": ' + "9" * 5000 + "}"}), "payload"),
        ("payload=" + '{"a":' * 33 + "1" + "}" * 33, "payload"),
        ("payload=" + "[" * 50_000, "payload"),
        ("key=%00", "key"),
        ("created_by=a%00b", "created_by"),
        ("cursor=nonsense", "cursor"),
        ("cursor=", "cursor"),
        ("cursor=" + "A" * 30, "cursor"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(call: Call, runs: list[int], query: str, field: str) -> None:
    refused = call("GET", f"/v1/runs?{query}", scope="read")
    assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
    assert fields_of(refused) == {field}


def test_a_cursor_from_another_list_is_refused(call: Call, runs: list[int]) -> None:
    cursor = listed(call, "limit=1&queue=mail")["next"]
    assert listed(call, f"limit=2&queue=mail&cursor={cursor}")["next"] is None
    refused = call("GET", f"/v1/runs?limit=1&queue=web&cursor={cursor}")
    assert list(invalid(refused)) == ["/cursor"]


def test_ascending_is_descending_backwards_and_a_cursor_keeps_its_order(call: Call, runs: list[int]) -> None:
    first = listed(call, "limit=2&order=asc")
    second = listed(call, f"limit=200&order=asc&cursor={first['next']}")
    ids = [run["id"] for run in first["items"] + second["items"]]
    assert ids[::-1] == [run["id"] for run in listed(call, "limit=200&order=desc")["items"]]
    assert {*runs} <= {*ids}
    newest = listed(call, "limit=2")["next"]
    for order, cursor in (("desc", first["next"]), ("asc", newest)):
        refused = call("GET", f"/v1/runs?limit=2&order={order}&cursor={cursor}")
        assert list(invalid(refused)) == ["/cursor"]
        assert "in another order" in told(refused)["errors"][0]["detail"]
    assert list(invalid(call("GET", "/v1/runs?order=newest"))) == ["/order"]


def test_a_search_that_takes_too_long_is_a_503_that_says_how_to_narrow_it(
    call: Call, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SECONDS", 0.1)
    monkeypatch.setattr(lists, "WAITED", 100)  # the wait for a lock counts as work
    with database.transaction(module_url) as holder:
        fetch_all(holder, "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE")
        slow = call("GET", "/v1/runs")
    assert (slow.status_code, told(slow)["type"]) == (503, "urn:rowcall:problem:search-too-slow")
    assert "narrow it" in told(slow)["detail"]


def test_a_list_and_a_preview_that_wait_for_a_lock_say_so(
    call: Call, module_url: str, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SECONDS", 0.2)
    previewed = {"json": {"action": "cancel", "filter": {"status": ["queued"]}}}
    with database.transaction(module_url) as holder:
        fetch_all(holder, "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE")
        for answer in (call("GET", "/v1/runs"), call("POST", "/v1/operations/preview", **previewed)):
            assert (answer.status_code, told(answer)["type"]) == (503, "urn:rowcall:problem:database-unreachable")
            assert "another transaction holds a needed lock" in told(answer)["detail"]


@pytest.mark.parametrize(("scope", "status"), [("enqueue", 403), ("operate", 403), ("read", 200)])
def test_only_who_may_read_sees_a_list(call: Call, scope: str, status: int) -> None:
    assert call("GET", "/v1/runs", scope=scope).status_code == status


def test_the_command_lists_with_the_same_filters(runs: list[int], environment: dict[str, str]) -> None:
    asked = ["--status", "dead", "--status", "queued", "--queue", "mail", "--payload", '{"number": 5}']
    shown = rowcall(environment, "runs", "list", *asked, "--created-after", "2000-01-01T00:00:00Z", "--json")
    assert [run["id"] for run in json.loads(shown.stdout)] == [runs[5]]


def test_the_command_looks_on_until_it_has_what_was_asked_for(
    module_url: str, environment: dict[str, str], runs: list[int]
) -> None:
    with database.transaction(module_url) as connection:
        made = "INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, 20001)"
        fetch_all(connection, made)
    shown = rowcall(environment, "runs", "list", "--queue", "web", "--limit", "2", "--json")
    assert [run["id"] for run in json.loads(shown.stdout)] == [runs[4], runs[2]]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--key", b"\xff"], 1, "key: cannot be searched: it contains half of a surrogate pair"),
    ],
)
def test_what_the_command_cannot_ask_is_refused_by_name(
    environment: dict[str, str], arguments: list[str], code: int, complaint: str
) -> None:
    refused = rowcall(environment, "runs", "list", *arguments)
    assert (refused.returncode, complaint in refused.stderr, "Traceback" in refused.stderr) == (code, True, False)
