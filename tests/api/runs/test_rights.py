"""What of a run only an operator's key may ask for: a queue that nobody made, and a priority before all others."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall import queue
from rowcall.access.api_keys import create_key
from rowcall.base import database
from tests.api.conftest import MAKER, Call, told

INVALID = "urn:rowcall:problem:run-invalid"


def asked(**more: Any) -> dict[str, Any]:
    return {"json": {"job_type": "noop", **more}}


def test_a_key_that_only_enqueues_names_no_queue_that_nobody_made(refused: Call) -> None:
    answer = refused("POST", "/v1/runs", 422, "queue", scope="enqueue", **asked(queue="invented"))
    assert told(answer)["type"] == INVALID
    assert "`rowcall queues resume invented` makes it" in told(answer)["detail"]


@pytest.mark.parametrize("name", ["default", "maintenance"])
def test_it_may_name_the_queue_of_any_job_type(call: Call, name: str) -> None:
    assert call("POST", "/v1/runs", scope="enqueue", **asked(queue=name)).status_code == 202


def test_it_may_name_a_queue_that_an_operator_made(call: Call, module_url: str) -> None:
    with database.transaction(module_url) as connection:
        queue.resume_queue(connection, "mail", MAKER)
    assert call("POST", "/v1/runs", scope="enqueue", **asked(queue="mail")).status_code == 202


@pytest.mark.parametrize("priority", [-1, -32768])
def test_it_may_not_go_before_what_is_urgent(refused: Call, priority: int) -> None:
    answer = refused("POST", "/v1/runs", 403, scope="enqueue", **asked(priority=priority))
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="operate"'
    assert "a priority below zero" in told(answer)["detail"]


def test_it_may_go_behind_others(call: Call) -> None:
    assert call("POST", "/v1/runs", scope="enqueue", **asked(priority=0)).status_code == 202
    assert call("POST", "/v1/runs", scope="enqueue", **asked(priority=7)).status_code == 202


@pytest.mark.parametrize("scopes", [["admin"], ["enqueue", "operate"]])
def test_an_operators_key_may_ask_for_both(
    call: Call, keys: dict[str, str], module_url: str, scopes: list[str]
) -> None:
    with database.transaction(module_url) as connection:
        keys["operators"] = create_key(connection, "operators", scopes, MAKER)
    assert call("POST", "/v1/runs", scope="operators", **asked(queue="invented", priority=-5)).status_code == 202
