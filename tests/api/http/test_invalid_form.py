"""Invalid input has one form on every route: the type `invalid-input`, and `errors` that point to the values."""

from __future__ import annotations

from typing import Any

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base import database
from rowcall_api.http.invalid import REPORTED_MOST
from tests.api.conftest import INVALID, MAKER, Call, There, invalid, told

DEFINITION = {"job_type": "noop", "schedule": "@daily"}


def one_error(answer: Any) -> tuple[str, str, str]:
    """Return where the one invalid value is, and its code."""
    assert told(answer)["type"] == INVALID
    [error] = told(answer)["errors"]
    return error["in"], error["pointer"], error["code"]


@pytest.mark.parametrize(
    ("method", "path", "sent", "pointer"),
    [
        ("POST", "/v1/runs", {"job_type": "nop"}, "/job_type"),
        ("POST", "/v1/runs/batch", {"runs": [{"job_type": "noop"}, {"job_type": "nop"}]}, "/runs/1/job_type"),
        ("PUT", "/v1/definitions/odd", {**DEFINITION, "job_type": "nop"}, "/job_type"),
        ("POST", "/v1/keys", {"name": "odd", "scopes": ["read"], "job_types": ["noop", "nop"]}, "/job_types/1"),
    ],
)
def test_an_unknown_job_type_is_pointed_to_and_has_its_code(
    refused: Call, method: str, path: str, sent: dict[str, Any], pointer: str
) -> None:
    answer = refused(method, path, 422, json=sent)
    assert one_error(answer) == ("body", pointer, "job-type-unknown")
    assert "did you mean 'noop'?" in told(answer)["errors"][0]["detail"]


def test_a_definition_whose_type_is_no_longer_known_is_pointed_to_in_the_path(
    refused: Call, there: There, module_url: str
) -> None:
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = 'of_old'")
    answer = refused("POST", "/v1/definitions/nightly/run-now", 422)
    assert one_error(answer) == ("path", "/name", "job-type-unknown")


def test_an_unknown_kind_of_effect_is_pointed_to_and_has_its_code(refused: Call) -> None:
    answer = refused("GET", "/v1/effects?kind=sent_email", 422)
    assert one_error(answer) == ("query", "/kind", "effect-kind-unknown")
    assert told(answer)["detail"].endswith("; did you mean 'sent_emails'?")


@pytest.mark.parametrize(
    ("path", "sent", "pointer"),
    [
        ("/v1/runs", [], ""),
        ("/v1/runs/batch", [], ""),
        ("/v1/runs", {"job_type": "noop", "payload": []}, "/payload"),
        ("/v1/runs/batch", {"runs": [{"job_type": "noop", "payload": "x"}]}, "/runs/0/payload"),
    ],
)
def test_what_must_be_an_object_is_said_to_be_one(refused: Call, path: str, sent: object, pointer: str) -> None:
    [error] = told(refused("POST", path, 422, json=sent))["errors"]
    assert (error["pointer"], error["detail"]) == (pointer, "must be a JSON object")


@pytest.mark.parametrize(
    ("sent", "pointer", "code"),
    [
        ({"schedule": "@daily"}, "/job_type", "missing"),
        ({**DEFINITION, "colour": "red"}, "/colour", "unknown"),
        ({**DEFINITION, "priority": None}, "/priority", "null"),
        ({**DEFINITION, "priority": "high"}, "/priority", "invalid"),
        ({"job_type": "prune_runs", "payload": {"colour": "red"}}, "/payload/colour", "unknown"),
    ],
)
def test_a_definition_has_the_codes_of_a_run(refused: Call, sent: dict[str, Any], pointer: str, code: str) -> None:
    assert one_error(refused("PUT", "/v1/definitions/odd", 422, json=sent)) == ("body", pointer, code)


@pytest.mark.parametrize(
    ("more", "pointer", "says"),
    [
        ({"job_type": "prune_runs"}, "/runs/1/job_type", "the scope `admin`, which a run of prune_runs needs"),
        ({"priority": -1}, "/runs/1/priority", "the scope `operate`, which a priority below zero needs"),
    ],
)
def test_a_run_of_a_batch_that_the_key_may_not_enqueue_is_pointed_to(
    refused: Call, more: dict[str, Any], pointer: str, says: str
) -> None:
    runs = [{"job_type": "noop"}, {"job_type": "noop", **more}]
    answer = told(refused("POST", "/v1/runs/batch", 403, scope="enqueue", json={"runs": runs}))
    [error] = answer["errors"]
    assert (answer["type"], error["pointer"], error["code"]) == ("urn:rowcall:problem:forbidden", pointer, "forbidden")
    assert error["detail"].endswith(says)


def test_a_run_of_a_batch_outside_the_limits_of_the_key_is_pointed_to(app: flask.Flask, module_url: str) -> None:
    with database.transaction(module_url) as connection:
        limits = Limits(["noop"], ["default"])
        key = api_keys.create_key(connection, "limited", ["enqueue"], MAKER, limits=limits)
    for more, pointer in (({"job_type": "expire_keys"}, "/runs/1/job_type"), ({"queue": "mail"}, "/runs/1/queue")):
        answer = app.test_client().post(
            "/v1/runs/batch",
            json={"runs": [{"job_type": "noop"}, {"job_type": "noop", **more}]},
            headers={"Authorization": f"Bearer {key}"},
        )
        [error] = told(answer)["errors"]
        assert (answer.status_code, error["pointer"]) == (403, pointer)


# What a schema refuses, and what only the core knows: the type, its payload and the ranges of the options.
OF_BOTH: dict[str, Any] = {
    "job_type": "prune_runs",
    "payload": {"colour": "red", "types": {"No Type": {"dead": 1}}},
    "priority": 99_999,
    "max_attempts": "many",
    "colour": "red",
}
ALL_OF_BOTH = {"/payload/colour", "/payload/types/No Type", "/priority", "/max_attempts", "/colour"}


def test_an_unknown_field_hides_nothing_else_that_is_wrong(refused: Call) -> None:
    answer = refused("POST", "/v1/runs", 422, json=OF_BOTH)
    assert invalid(answer).keys() == ALL_OF_BOTH
    assert {error["pointer"]: error["code"] for error in told(answer)["errors"]}["/colour"] == "unknown"
    known = {name: value for name, value in OF_BOTH.items() if name not in ("colour", "max_attempts")}
    assert invalid(refused("POST", "/v1/runs", 422, json=known)).keys() == ALL_OF_BOTH - {"/colour", "/max_attempts"}
    unknown = {**OF_BOTH, "job_type": "prune_run"}
    assert invalid(refused("POST", "/v1/runs", 422, json=unknown)).keys() == {
        "/job_type",
        "/priority",
        "/max_attempts",
        "/colour",
    }
    assert invalid(refused("POST", "/v1/runs", 422, json={"payload": 7, "queue": "No Queue"})).keys() == {
        "/job_type",
        "/payload",
        "/queue",
    }
    assert invalid(refused("POST", "/v1/runs", 422, json=[7])).keys() == {""}


def test_an_unknown_field_of_a_run_hides_nothing_that_is_wrong_with_the_batch(refused: Call) -> None:
    fine = {"job_type": "noop"}
    late = {"job_type": "nop", "priority": 99_999}
    answer = refused("POST", "/v1/runs/batch", 422, json={"runs": [7, OF_BOTH, fine, None, late], "colour": "red"})
    assert invalid(answer).keys() == {
        "/runs/0",
        *(f"/runs/1{pointer}" for pointer in ALL_OF_BOTH),
        "/runs/3",
        "/runs/4/job_type",
        "/runs/4/priority",
        "/colour",
    }
    answer = refused("POST", "/v1/runs/batch", 422, json={"runs": [fine, late, {**late, "job_type": "noop"}]})
    assert invalid(answer).keys() == {"/runs/1/job_type", "/runs/1/priority", "/runs/2/priority"}
    assert invalid(refused("POST", "/v1/runs/batch", 422, json={"runs": [], "colour": 1})).keys() == {
        "/runs",
        "/colour",
    }


def test_an_unknown_field_hides_nothing_that_is_wrong_with_a_clone_or_an_operation(refused: Call, there: There) -> None:
    clone = there.path("/v1/runs/{run_id}/clone")
    assert invalid(refused("POST", clone, 422, json={"priority": 99_999, "colour": "red"})).keys() == {
        "/priority",
        "/colour",
    }
    asked = {"action": "cancel", "run_at": "2030-01-01T00:00:00Z", "colour": "red"}
    assert invalid(refused("POST", "/v1/operations", 422, json=asked)).keys() == {"/filter", "/run_at", "/colour"}
    del asked["colour"]
    assert invalid(refused("POST", "/v1/operations/preview", 422, json=asked)).keys() == {"/filter", "/run_at"}
    wrong = {"action": "wait", "filter": {"status": ["odd"]}, "colour": "red"}
    assert invalid(refused("POST", "/v1/operations", 422, json=wrong)).keys() == {
        "/action",
        "/filter/status/0",
        "/colour",
    }


def test_a_member_of_a_map_is_pointed_to_itself(refused: Call) -> None:
    payload = {"types": {"noop": {"dead": 0}, "No Type": {"dead": 1}}}
    answer = refused("POST", "/v1/runs", 422, json={"job_type": "prune_runs", "payload": payload})
    pointers = {error["pointer"] for error in told(answer)["errors"]}
    assert pointers == {"/payload/types/noop/dead", "/payload/types/No Type"}


@pytest.mark.parametrize(("wrong", "more"), [(REPORTED_MOST, None), (REPORTED_MOST + 5, 5)])
@pytest.mark.parametrize("value", ["red", "\0"], ids=["by the schema", "by the body"])
def test_what_is_not_listed_is_counted(refused: Call, wrong: int, more: int | None, value: str) -> None:
    sent = {"job_type": "noop", **{f"colour_{number}": value for number in range(wrong)}}
    answer = told(refused("POST", "/v1/runs", 422, json=sent))
    assert (len(answer["errors"]), answer.get("more_errors")) == (REPORTED_MOST, more)


def test_what_is_not_listed_of_a_batch_is_counted(refused: Call) -> None:
    runs = [{"job_type": "noop", "priority": 99_999}] * 30
    answer = told(refused("POST", "/v1/runs/batch", 422, json={"runs": runs}))
    assert (len(answer["errors"]), answer["more_errors"]) == (REPORTED_MOST, 10)


@pytest.mark.parametrize(
    "other",
    [{"payload": {"n": 2}}, {"payload": {"n": 2}, "priority": 5}, {"job_type": "expire_keys"}],
    ids=["same options", "other options", "other type"],
)
def test_two_runs_of_a_batch_with_one_key_are_both_pointed_to(refused: Call, other: dict[str, Any]) -> None:
    key = {"idempotency_key": "twice"}
    runs = [
        {"job_type": "noop", "payload": {"n": 1}, **key},
        {"job_type": "noop"},
        {"job_type": "noop", **other, **key},
    ]
    answer = told(refused("POST", "/v1/runs/batch", 422, json={"runs": runs}))
    assert answer["type"] == "urn:rowcall:problem:idempotency-key-reused"
    assert [error["pointer"] for error in answer["errors"]] == ["/runs/0", "/runs/2"]
    assert answer["detail"].startswith(
        "/runs/0 and /runs/2 have the same idempotency key 'twice' but different content"
    )


def test_the_key_that_has_a_name_is_a_field(call: Call, refused: Call) -> None:
    made = told(call("POST", "/v1/keys", json={"name": "taken", "scopes": ["read"]}))
    answer = told(refused("POST", "/v1/keys", 409, json={"name": "taken", "scopes": ["read"]}))
    assert (answer["type"], answer["key_id"]) == ("urn:rowcall:problem:key-name-taken", made["id"])


def test_every_operation_may_refuse_a_query_that_is_not_utf8(call: Call) -> None:
    assert call("GET", "/v1/runs?queue=%ff").status_code == 400
    paths = told(call("GET", "/openapi.json"))["paths"]
    operations = [
        one for path in paths.values() for name, one in path.items() if name in ("get", "put", "post", "delete")
    ]
    assert all("400" in one["responses"] for one in operations)
