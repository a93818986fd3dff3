"""POST /v1/runs/batch: many runs in one request, all or none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Call, invalid, told

BATCH = "/v1/runs/batch"


def run(number: int, **more: Any) -> dict[str, Any]:
    return {"job_type": "noop", "payload": {"n": number}, **more}


def test_new_runs_are_answered_in_order_and_a_repeated_request_with_the_same_ones(call: Call) -> None:
    runs = [run(number, idempotency_key=f"batch {number}") for number in range(3)]
    first = call("POST", BATCH, "enqueue", json={"runs": runs})
    assert (first.status_code, told(first)["new"]) == (202, 3)
    payloads = [told(call("GET", f"/v1/runs/{item['id']}"))["payload"]["n"] for item in told(first)["items"]]
    assert payloads == [0, 1, 2]
    again = call("POST", BATCH, "enqueue", json={"runs": runs})
    assert (again.status_code, told(again)["new"]) == (200, 0)
    assert told(again)["items"] == [{**item, "replayed": True} for item in told(first)["items"]]


def test_a_key_of_a_batch_is_the_key_of_the_header(call: Call) -> None:
    one = call("POST", "/v1/runs", json=run(7), headers={"Idempotency-Key": "either way"})
    [item] = told(call("POST", BATCH, json={"runs": [run(7, idempotency_key="either way")]}))["items"]
    assert item == {"id": told(one)["id"], "replayed": True}


@pytest.mark.parametrize(
    ("runs", "pointers"),
    [
        ([], {"/runs"}),
        ([run(1)] * 1001, {"/runs"}),
        ([run(1), 7], {"/runs/1"}),
        ([run(1), run(2, colour="red")], {"/runs/1/colour"}),
        ([run(1), run(2, idempotency_key="a,b")], {"/runs/1/idempotency_key"}),
        ([run(1), {"job_type": "nonsense"}, run(2, queue="No Queue")], {"/runs/1/job_type", "/runs/2/queue"}),
        (
            [run(1), {"job_type": "prune_runs", "payload": {"keep_days": {"dead": 0}}}],
            {"/runs/1/payload/keep_days/dead"},
        ),
        ([run(1), {"job_type": "noop", "payload": {"n": "\0"}}], {"/runs/1/payload/n"}),
    ],
    ids=["none", "too many", "no object", "unknown field", "key", "two rules", "payload", "null character"],
)
def test_what_is_invalid_is_pointed_to_and_nothing_enqueued(
    call: Call, refused: Call, runs: list[Any], pointers: set[str]
) -> None:
    assert invalid(refused("POST", BATCH, 422, json={"runs": runs})).keys() == pointers


def test_a_conflict_is_pointed_to_and_nothing_enqueued(call: Call, refused: Call) -> None:
    call("POST", BATCH, json={"runs": [run(1, idempotency_key="conflict")]})
    answer = told(refused("POST", BATCH, 422, json={"runs": [run(5), run(2, idempotency_key="conflict")]}))
    assert answer["type"] == "urn:rowcall:problem:idempotency-key-reused"
    assert [error["pointer"] for error in answer["errors"]] == ["/runs/1"]


def test_a_queue_that_does_not_exist_is_pointed_to_for_a_key_that_only_enqueues(refused: Call) -> None:
    answer = refused("POST", BATCH, 422, scope="enqueue", json={"runs": [run(1), run(2, queue="invented")]})
    assert invalid(answer).keys() == {"/runs/1/queue"}


@pytest.mark.parametrize(
    "more", [{"job_type": "prune_runs", "payload": {}}, {"priority": -1}], ids=["type", "priority"]
)
def test_one_run_that_the_key_may_not_enqueue_refuses_all(refused: Call, more: dict[str, Any]) -> None:
    refused("POST", BATCH, 403, scope="enqueue", json={"runs": [run(1), {**run(2), **more}]})


def test_a_key_for_the_whole_batch_is_refused_because_it_would_not_be_recognized(refused: Call) -> None:
    answer = refused("POST", BATCH, 422, json={"runs": [run(1)]}, headers={"Idempotency-Key": "order-7"})
    assert invalid(answer).keys() == {"/Idempotency-Key"}
