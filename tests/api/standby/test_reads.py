"""Lists, counts, charts, metrics and screens come from the standby, and all else from the leader."""

from __future__ import annotations

import re

import flask
import pytest
from werkzeug.test import TestResponse

from rowcall_api.app import create_app
from tests.api.conftest import Call, told
from tests.api.standby.conftest import state
from tests.page.visits import Visit
from tests.support.connections import disconnect
from tests.support.processes import wait_until
from tests.support.standby import Leader, StandbyServer

pytestmark = pytest.mark.usefixtures("answering")

LISTS = (
    *("runs", "workers", "queues", "effects", "operations", "definitions", "failures", "files", "audit", "stats"),
    "runs?payload={}&count=true",
    "series?from=2026-11-28T00:00:00Z&to=2026-11-28T01:00:00Z&step=1m",
)
SCREENS = (
    *("runs", "workers", "queues", "effects", "operations", "definitions", "failures", "failures/attempts", "audit"),
    "runs?payload={}&count=yes",
    "effects?find=ada",
)
OF_ONE_RUN = ("", "/attempts", "/log", "/effects", "/explain")
FROM_STANDBY = "s ago, from the standby."


def is_standbys(answer: TestResponse) -> bool:
    """Whether the standby has answered, and its answer says how old it is."""
    assert answer.status_code == 200, answer.text
    return "Rowcall-Age" in answer.headers


def age(answer: TestResponse) -> float:
    assert is_standbys(answer)
    return float(answer.headers["Rowcall-Age"])


def enqueue(call: Call) -> TestResponse:
    answer = call("POST", "/v1/runs", json={"job_type": "noop", "payload": {"user_id": 1}})
    assert answer.status_code == 202, answer.text
    return answer


def ids(answer: TestResponse) -> set[int]:
    return {run["id"] for run in told(answer)["items"]}


@pytest.mark.parametrize("path", LISTS)
def test_the_standby_answers_lists_counts_and_charts_and_says_how_old_they_are(call: Call, path: str) -> None:
    assert 0 < age(call("GET", f"/v1/{path}")) <= 10


def test_the_leader_answers_what_a_caller_may_just_have_written(call: Call, behind: StandbyServer) -> None:
    with behind.paused():
        run_id = told(enqueue(call))["id"]
        for path in (*(f"runs/{run_id}{part}" for part in OF_ONE_RUN), "keys", "job-types"):
            assert not is_standbys(call("GET", f"/v1/{path}"))


def test_a_list_shows_a_write_whose_position_the_caller_sends(call: Call, behind: StandbyServer) -> None:
    with behind.paused():
        written = enqueue(call)
        position = {"Rowcall-Position": written.headers["Rowcall-Position"]}
        old, new = call("GET", "/v1/runs"), call("GET", "/v1/runs", headers=position)
        assert (is_standbys(old), is_standbys(new)) == (True, False)
        assert told(written)["id"] in ids(new) - ids(old)
    replayed = call("GET", "/v1/runs", headers=position)
    assert is_standbys(replayed)
    assert told(written)["id"] in ids(replayed)


@pytest.mark.parametrize("sent", ["soon", "99999999999999999999", "-1", "٣"])
def test_what_is_not_a_position_reads_from_the_leader(call: Call, sent: str) -> None:
    assert not is_standbys(call("GET", "/v1/runs", headers={"Rowcall-Position": sent}))


@pytest.mark.parametrize("directive", ["no-cache", "max-age=0", "max-age=-1"])
def test_a_caller_may_insist_on_the_leader(call: Call, directive: str) -> None:
    assert not is_standbys(call("GET", "/v1/runs", headers={"Cache-Control": directive}))


def test_answers_grow_old_while_replay_is_paused_and_a_caller_may_limit_their_age(
    call: Call, behind: StandbyServer
) -> None:
    with behind.paused():
        enqueue(call)
        wait_until(lambda: age(call("GET", "/v1/runs")) > 1, "the answers are a second old")
        assert not is_standbys(call("GET", "/v1/runs", headers={"Cache-Control": "max-age=1"}))
        assert is_standbys(call("GET", "/v1/runs", headers={"Cache-Control": "max-age=60"}))


def test_metrics_come_from_the_standby_and_say_whether_it_answers(call: Call) -> None:
    answer = call("GET", "/metrics")
    assert is_standbys(answer)
    assert "\nrowcall_standby_up 1.0\n" in answer.text
    assert re.search(r"^rowcall_standby_age_seconds [0-9.e-]+$", answer.text, re.M)


@pytest.fixture
def visit(app: flask.Flask, keys: dict[str, str]) -> Visit:
    """Return an operator who has signed in, and whose browser has forgotten the position of that write."""
    visit = Visit(app, keys["admin"])
    forget_position(visit)
    return visit


def forget_position(visit: Visit) -> None:
    """Do what a browser does when the cookie has expired."""
    visit.client.delete_cookie("rowcall_position", domain="localhost", path="/admin")


@pytest.mark.parametrize("path", ["", *(f"/{name}" for name in SCREENS)])
def test_screens_with_lists_come_from_the_standby_and_say_so(visit: Visit, path: str) -> None:
    screen = visit.get(path)
    assert is_standbys(screen.response)
    assert FROM_STANDBY in screen.text


def test_other_screens_come_from_the_leader(call: Call, visit: Visit, behind: StandbyServer) -> None:
    with behind.paused():
        run_id = told(enqueue(call))["id"]
        for path in (f"/runs/{run_id}", "/keys", "/queues/default"):
            screen = visit.get(path)
            assert not is_standbys(screen.response)
            assert FROM_STANDBY not in screen.text


def test_an_operator_sees_what_they_have_just_changed(visit: Visit, behind: StandbyServer) -> None:
    with behind.paused():
        visit.post("/queues/default/pause")
        now = visit.get("/queues")
        assert not is_standbys(now.response)
        forget_position(visit)
        then = visit.get("/queues")
        assert is_standbys(then.response)
        assert ("paused" in now.text, "paused" in then.text) == (True, False)
    assert "paused" in visit.get("/queues").text


def test_everything_comes_from_the_leader_while_the_standby_is_down(
    call: Call, visit: Visit, behind: StandbyServer
) -> None:
    behind.kill()
    for path in LISTS:
        assert not is_standbys(call("GET", f"/v1/{path}"))
    screen = visit.get("/runs")
    assert not is_standbys(screen.response)
    assert "reload the page" not in screen.text
    wait_until(lambda: state(call) == "away: it cannot be reached", "the API knows that the standby is down")
    metrics = call("GET", "/metrics").text
    assert "\nrowcall_standby_up 0.0\n" in metrics
    assert "rowcall_standby_age_seconds" not in metrics
    behind.start()
    wait_until(lambda: state(call) == "answers", "the standby answers")


def test_without_the_setting_nothing_changes(ahead: Leader, keys: dict[str, str]) -> None:
    app = create_app(ahead.url)
    client, mine = app.test_client(), {"Authorization": f"Bearer {keys['admin']}"}
    written = client.post("/v1/runs", json={"job_type": "noop", "payload": {"user_id": 1}}, headers=mine)
    listed = client.get("/v1/runs", headers=mine)
    assert (written.status_code, listed.status_code) == (202, 200)
    assert not {"Rowcall-Position", "Rowcall-Age"} & {*written.headers.keys(), *listed.headers.keys()}
    assert "standby" not in told(client.get("/readyz"))
    assert "rowcall_standby" not in client.get("/metrics", headers=mine).text
    disconnect(app)
