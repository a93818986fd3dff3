"""/v1/runs/{id}/explain and `rowcall runs explain` give the same answer to "why has this not run?"."""

from __future__ import annotations

import json

from tests.api.conftest import Call, told
from tests.support.processes import rowcall

LATER = {"job_type": "noop", "run_at": "2100-01-01T00:00:00Z"}


def test_api_and_command_say_the_same(call: Call, environment: dict[str, str]) -> None:
    run_id = told(call("POST", "/v1/runs", json=LATER))["id"]
    answer = call("GET", f"/v1/runs/{run_id}/explain", scope="read")
    assert answer.status_code == 200
    explained = told(answer)
    assert [one["name"] for one in explained["conditions"] if not one["holds"]] == ["due", "worker"]
    assert explained["commands"][0] == f"rowcall runs run-now {run_id}"
    asked = rowcall(environment, "runs", "explain", str(run_id), "--json")
    # Only the remaining times may differ.
    assert json.loads(asked.stdout)["commands"] == explained["commands"]
    shown = rowcall(environment, "runs", "explain", str(run_id)).stdout
    assert f"run {run_id} is queued: not due until 2100-01-01 00:00:00+00:00" in shown
    assert f"try: rowcall runs run-now {run_id}" in shown


def test_a_run_that_is_not_there(call: Call, environment: dict[str, str]) -> None:
    assert call("GET", "/v1/runs/99999/explain").status_code == 404
    asked = rowcall(environment, "runs", "explain", "99999")
    assert (asked.returncode, "there is no run 99999" in asked.stderr) == (1, True)
