"""/v1/workers: live workers and their runs, as the document describes them."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.base import database
from rowcall.queue.claims.handover import holder_of
from rowcall.queue.workers import Registration, register, stopped
from rowcall.status import Status
from tests.api.conftest import Call, told
from tests.support.rows import run_in


@pytest.fixture(scope="module", autouse=True)
def running(module_url: str) -> int:
    """Register a worker that performs a run, and one that has stopped; return the run."""
    with database.transaction(module_url) as connection:
        register(connection, Registration("w", "here", 1, "0.2.0", None, ["noop"], 4))
        register(connection, Registration("x", "here", 2, "0.2.0", ["mail"], ["noop"], 4))
        stopped(connection, "x")
        run = run_in(connection, Status.RUNNING, locked_by="'w'", started_at="now()", progress="""'{"share": 1}'""")
    number: int = run["id"]
    return number


def listed(call: Call, query: str = "") -> dict[str, Any]:
    return told(call("GET", f"/v1/workers{query}", scope="read"))


def test_a_live_worker_is_listed_with_the_runs_that_it_performs(call: Call, running: int) -> None:
    [worker] = listed(call)["items"]
    assert (worker["id"], worker["alive"], worker["running"]) == ("w", True, 1)
    [run] = worker["runs"]
    assert (run["run_id"], run["attempt"], run["progress"]) == (running, 2, {"share": 1, "note": ""})


def test_stopped_ones_are_listed_on_request_a_page_at_a_time(call: Call) -> None:
    first = listed(call, "?stopped=true&limit=1")
    second = listed(call, f"?stopped=true&limit=1&cursor={first['next']}")
    assert [item["id"] for item in first["items"] + second["items"]] == ["x", "w"]
    assert second["next"] is None


def test_the_list_is_as_it_is_described(app: flask.Flask, call: Call) -> None:
    described = told(app.test_client().get("/openapi.json"))
    schema = described["paths"]["/v1/workers"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    OAS31Validator({**schema, "components": described["components"]}).validate(listed(call, "?stopped=true"))


@pytest.mark.parametrize(
    ("query", "field"), [("stopped=maybe", "stopped"), ("limit=0", "limit"), ("cursor=w", "cursor"), ("host=a", "host")]
)
def test_what_cannot_be_asked_is_a_wrong_field(refused: Call, query: str, field: str) -> None:
    refused("GET", f"/v1/workers?{query}", 422, field)


def test_where_nothing_was_handed_over_both_lists_are_empty(call: Call) -> None:
    assert told(call("GET", "/v1/workers/handed-over")) == {"waiting": [], "consumers": [], "more": False}


def test_messages_that_wait_and_consumers_are_listed_as_it_is_described(
    app: flask.Flask, call: Call, module_url: str
) -> None:
    with database.transaction(module_url) as connection:
        waiting, begun = (
            run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", started_at="now()")["id"]
            for holder in (holder_of("parcels", "shop.send"), "consumer gpu-1:7:abc")
        )
    found = told(call("GET", "/v1/workers/handed-over", scope="read"))
    [message], [consumer] = found["waiting"], found["consumers"]
    assert (message["queue"], message["task"]) == ("parcels", "shop.send")
    assert (message["waiting"], message["run_id"]) == (1, waiting)
    assert (consumer["id"], consumer["hostname"], consumer["pid"]) == ("consumer gpu-1:7:abc", "gpu-1", 7)
    assert (consumer["alive"], consumer["running"], consumer["runs"][0]["run_id"]) == (True, 1, begun)
    described = told(app.test_client().get("/openapi.json"))
    answer = described["paths"]["/v1/workers/handed-over"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    OAS31Validator({**schema, "components": described["components"]}).validate(found)


@pytest.mark.parametrize("scope", ["enqueue", "operate"])
@pytest.mark.parametrize("path", ["/v1/workers", "/v1/workers/handed-over"])
def test_it_needs_the_scope_read(refused: Call, path: str, scope: str) -> None:
    refused("GET", path, 403, scope=scope)
