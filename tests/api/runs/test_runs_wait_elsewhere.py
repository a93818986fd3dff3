"""GET /v1/runs/{id}?wait in another WSGI server: a request waits in its thread, and only a few may."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import flask
import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.status import Status
from tests.api.conftest import Call, invalid, told
from tests.support.processes import wait_until
from tests.support.rows import run_in


def made(url: str) -> int:
    with database.transaction(url) as connection:
        run_id: int = run_in(connection, Status.QUEUED)["id"]
    return run_id


def test_one_request_waits_until_the_run_ends_and_another_is_refused(
    app: flask.Flask, call: Call, module_url: str
) -> None:
    run_id = made(module_url)
    path = f"/v1/runs/{run_id}?wait=60"
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(call, "GET", path)
        wait_until(lambda: app.extensions["awaited_runs"].needed, "the request waits")
        assert call("GET", path).status_code == 429
        wait_until(lambda: app.extensions["database"].pool.checkedout() == 0, "it holds no connection")
        with database.transaction(module_url) as connection:
            queue.cancel(connection, run_id, Operator("a test"))
        assert told(waiting.result())["status"] == "cancelled"
    assert told(call("GET", path))["status"] == "cancelled"


def test_when_the_time_is_up_the_run_is_shown_as_it_is(call: Call, module_url: str) -> None:
    run_id = made(module_url)
    for _ in range(2):  # the first has made room for the second
        assert told(call("GET", f"/v1/runs/{run_id}?wait=1", scope="read"))["status"] == "queued"


@pytest.mark.parametrize("wait", ["-1", "61", "one", "1.5", "", "nan", "1&wait=2"])
def test_a_time_that_is_no_number_of_seconds_up_to_a_minute_is_refused(call: Call, module_url: str, wait: str) -> None:
    assert set(invalid(call("GET", f"/v1/runs/{made(module_url)}?wait={wait}"))) == {"/wait"}
