"""Without ROWCALL_APP, there are only Rowcall's own routes and job types, and nothing of the example."""

from __future__ import annotations

from tests.api.conftest import Call, told
from tests.support.processes import rowcall


def test_there_are_no_routes_of_the_example(call: Call) -> None:
    assert call("POST", "/v1/invoices/1/charge").status_code == 404
    assert not [path for path in told(call("GET", "/openapi.json"))["paths"] if "invoices" in path]


def test_a_job_type_of_the_example_is_unknown_and_the_answer_says_what_is_not_set(
    call: Call, environment: dict[str, str]
) -> None:
    payload = {"job_type": "cleanup_nightly", "payload": {"day": "2026-03-23"}}
    refused = call("POST", "/v1/runs", json=payload)
    assert [error["code"] for error in told(refused)["errors"]] == ["job-type-unknown"]
    sentence = (
        "there is no job type 'cleanup_nightly'; known here: call_ping_url, carry_out_operation, expire_keys, noop,"
        " prune_runs, send_incidents; ROWCALL_APP is not set, so only Rowcall's own job types are known; set it to the"
        " package that has yours"
    )
    assert told(refused)["detail"] == sentence
    asked = rowcall(environment, "enqueue", "cleanup_nightly", '{"day": "2026-03-23"}')
    assert (asked.returncode, asked.stderr) == (1, f"rowcall: {sentence}\n")
