"""Operations on the page: preview, start, progress, refusals, and the buttons that steer them."""

from __future__ import annotations

import re

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue.operations import Action
from rowcall.status import Status
from tests.page.conftest import MAKER, Browse
from tests.page.visits import Screen, Visit
from tests.support.operations import done, finish, start
from tests.support.rows import row_of, run_in

UNKNOWN = """
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)
VALUES ('mail:' || %(run_id)s, %(run_id)s, 1, '', 'unknown')
"""


def runs_in(connection: PgConnection, status: Status, queue: str, count: int = 1) -> list[int]:
    """Insert runs, and return their ids."""
    return [run_in(connection, status, queue=f"'{queue}'")["id"] for _ in range(count)]


def operation_of(screen: Screen) -> int:
    """Return the id of the operation that is shown."""
    [found] = re.findall(r"^/admin/operations/(\d+)", screen.address)
    return int(found)


@pytest.mark.parametrize(
    ("action", "status", "does"),
    [
        ("retry", Status.DEAD, "Retry 2 runs Nothing has been changed yet."),
        ("cancel", Status.QUEUED, "Cancel 2 runs Nothing has been changed yet."),
        ("run_now", Status.FAILED, "Run now: 2 runs Nothing has been changed yet."),
    ],
)
def test_a_preview_says_what_would_change_and_changes_nothing(
    browse: Browse, committed: PgConnection, action: str, status: Status, does: str
) -> None:
    queue = f"preview_{action}"
    run_ids = [
        run_in(committed, status, queue=f"'{queue}'", run_at="now() + interval '1 hour'")["id"] for _ in range(2)
    ]
    screen = browse().get(f"/operations/new/{action}", queue=queue)
    assert (screen.status, does in screen.text) == (200, True), screen.text
    assert f"queue {queue}" in screen.text
    assert {f"/admin/runs/{run_id}" for run_id in run_ids} <= {*screen.links}
    assert {row_of(committed, run_id)["status"] for run_id in run_ids} == {status}


def test_the_status_of_the_address_is_the_filter(browse: Browse, committed: PgConnection) -> None:
    runs_in(committed, Status.DEAD, "by_status")
    screen = browse().get("/operations/new/retry", status="dead", queue="by_status")
    assert (screen.address.split("?")[0], "Retry 1 run " in screen.text) == ("/admin/operations/new/retry", True)
    assert "Retry this run" in screen.forms


def test_an_operation_is_started_watched_and_finished(browse: Browse, committed: PgConnection) -> None:
    run_ids = runs_in(committed, Status.DEAD, "whole", 2)
    operator = browse()
    screen = operator.send("/operations/new/retry?queue=whole", "Retry these runs", reason="the provider is back")
    assert "The operation has started." in screen.text
    assert "0 changed, 0 refused, of 2" in screen.text
    assert "the provider is back" in screen.text
    finish(committed, operation_of(screen))
    watched = operator.get(screen.address)
    assert ("finished" in watched.text, "2 changed" in watched.text) == (True, True)
    assert {row_of(committed, run_id)["status"] for run_id in run_ids} == {Status.QUEUED}
    assert {"Stop the operation", "Continue the operation"} & {*watched.forms} == set()
    assert "/admin/operations/" in " ".join(operator.get("/operations").links)


def test_a_form_that_is_sent_twice_starts_one_operation(browse: Browse, committed: PgConnection) -> None:
    runs_in(committed, Status.DEAD, "twice")
    operator = browse()
    form = operator.get("/operations/new/retry", queue="twice").forms["Retry this run"]
    first, second = (operator.submit(form) for _ in range(2))
    assert operation_of(first) == operation_of(second)


def test_many_runs_are_changed_one_first_and_an_operator_continues_or_stops(
    browse: Browse, committed: PgConnection
) -> None:
    runs_in(committed, Status.DEAD, "canary", 12)
    operator = browse()
    form = operator.get("/operations/new/retry", queue="canary").forms["Retry these runs"]
    assert form.fields["canary"] == ["yes"], "proposed for more than ten runs"
    screen = operator.submit(form)
    path = f"/operations/{operation_of(screen)}"
    finish(committed, operation_of(screen))
    waiting = operator.get(path)
    assert "the operation is waiting for an operator" in waiting.text
    stopped = operator.send(path, "Stop the operation")
    assert "The operation stops before its next batch." in stopped.text
    assert "Stop the operation" not in stopped.forms
    assert "The operation continues." in operator.send(path, "Continue the operation").text
    assert finish(committed, operation_of(screen))["changed"] == 12


def test_runs_that_were_refused_are_listed_with_the_reason(browse: Browse, committed: PgConnection) -> None:
    held = {"queue": "'refusing'", "natural_key": "'it'", "unique_mode": "'until_failed'"}
    dead = run_in(committed, Status.DEAD, **held)["id"]
    run_in(committed, Status.QUEUED, **held)
    operation = done(committed, Action.RETRY, queue="refusing")
    screen = browse("read").get(f"/operations/{operation['id']}")
    assert "1 refused" in screen.text
    assert f"/admin/runs/{dead}" in screen.links
    assert "No run was refused." not in screen.text


def test_runs_that_would_die_again_are_counted(browse: Browse, committed: PgConnection) -> None:
    [run_id] = runs_in(committed, Status.DEAD, "unresolved")
    fetch_all(committed, UNKNOWN, {"run_id": run_id})
    assert (
        "1 of them has an effect with an unknown outcome"
        in browse().get("/operations/new/retry", queue="unresolved").text
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "matches every run"),
        ({"status": "lost"}, "Must be one of"),
        ({"created_after": "someday"}, "is not a time"),
        ({"payload": "{"}, "is not JSON"),
    ],
)
def test_a_filter_that_is_wrong_or_missing_is_refused(browse: Browse, query: dict[str, str], said: str) -> None:
    operator = browse()
    for refused in (operator.get("/operations/new/cancel", **query), operator.post(address(query))):
        assert (refused.status, refused.response.mimetype, said in refused.text) == (422, "text/html", True)


def address(query: dict[str, str]) -> str:
    return "/operations/new/cancel?" + "&".join(f"{name}={value}" for name, value in query.items())


def test_a_reason_that_is_too_long_is_named_at_its_field_and_starts_nothing(
    browse: Browse, committed: PgConnection
) -> None:
    runs_in(committed, Status.DEAD, "reasons")
    count = "SELECT count(*) FROM rowcall.operations"
    before = fetch_value(committed, count)
    screen = browse().send("/operations/new/retry?queue=reasons", "Retry this run", reason="x" * 2000)
    assert (screen.status, 'id="reason-wrong"' in screen.html, fetch_value(committed, count)) == (422, True, before)


@pytest.mark.parametrize(
    "path", ["/operations/new/retry?queue=default", "/operations/1/stop", "/operations/1/continue"]
)
def test_a_key_without_operate_starts_and_steers_nothing(browse: Browse, committed: PgConnection, path: str) -> None:
    reader = browse("read")
    refused = reader.post(path)
    assert (refused.status, "lacks the scope `operate`" in refused.text) == (403, True)
    shown = reader.get(f"/operations/{start(committed, Action.RETRY, queue='of_reader')}")
    assert {"Stop the operation", "Continue the operation"} & {*shown.forms} == set()


def test_a_limited_key_starts_and_steers_only_what_is_within_its_limits(
    app: flask.Flask, committed: PgConnection
) -> None:
    limits = Limits(None, ["mine"])
    limited = Visit(app, api_keys.create_key(committed, "test mine", ["read", "operate"], MAKER, limits=limits))
    runs_in(committed, Status.DEAD, "mine")
    assert limited.get("/operations/new/retry", queue="other").status == 403
    assert limited.get("/operations/new/retry", status="dead").status == 403
    assert "Retry this run" in limited.get("/operations/new/retry", queue="mine").forms
    others, own = (start(committed, Action.RETRY, queue=queue) for queue in ("other", "mine"))
    assert "Stop the operation" not in limited.get(f"/operations/{others}").forms
    assert limited.post(f"/operations/{others}/stop").status == 403
    assert "stops before" in limited.send(f"/operations/{own}", "Stop the operation").text


def test_an_operation_that_has_finished_cannot_be_stopped(browse: Browse, committed: PgConnection) -> None:
    operation = done(committed, Action.RETRY, queue="nothing_there")
    refused = browse().post(f"/operations/{operation['id']}/stop")
    assert (refused.status, refused.response.mimetype) == (409, "text/html")
    assert f"/admin/operations/{operation['id']}" in refused.links


def test_an_operation_leads_to_the_runs_of_its_filter(browse: Browse, committed: PgConnection) -> None:
    [run_id] = runs_in(committed, Status.DEAD, "led")
    fetch_all(
        committed, "UPDATE rowcall.job_runs SET payload = '{\"of\": 1}' WHERE id = %(run_id)s", {"run_id": run_id}
    )
    operation_id = start(committed, Action.RETRY, queue="led", payload={"of": 1}, status=(Status.DEAD,))
    reader = browse("read")
    [link] = [one for one in reader.get(f"/operations/{operation_id}").links if "/runs?" in one]
    assert f"/admin/runs/{run_id}" in reader.get(link).links


def test_lists_without_operations_say_how_to_start_one(browse: Browse) -> None:
    assert "filter the list of runs" in browse("read").get("/operations").text
    assert browse("read").get("/operations/987654").status == 404
