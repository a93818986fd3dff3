"""Definitions paused, resumed and run now over HTTP, and their occurrences."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base import database
from tests.api.conftest import Call, told
from tests.api.definitions.conftest import rows
from tests.definitions.making import overdue, row_of

pytestmark = pytest.mark.usefixtures("example_app")


# Pause, resume, run now


def test_a_pause_keeps_the_next_time_and_resume_ends_it(
    nightly: dict[str, Any], call: Call, actors: dict[str, str], path: str, module_url: str, name: str
) -> None:
    paused = told(call("POST", f"{path}/pause", scope="steer"))
    assert paused["paused_at"] is not None
    assert call("GET", path).json == paused
    resumed = told(call("POST", f"{path}/resume", scope="steer"))
    assert (resumed["paused_at"], resumed["next_run_at"]) == (None, nightly["next_run_at"])
    with database.transaction(module_url) as connection:
        [*_, first, second] = database.fetch_all(
            connection,
            "SELECT * FROM rowcall.audit_log WHERE subject = 'definition' AND subject_id = %(id)s ORDER BY id",
            row_of(connection, name),
        )
    assert (first["who"], first["action"], second["action"]) == (actors["steer"], "pause", "resume")
    assert first["request_id"] is not None


@pytest.mark.parametrize("scope", ["operate", "admin"])
def test_a_definition_whose_type_the_code_has_lost_is_paused_and_removed(
    nightly: dict[str, Any], call: Call, path: str, module_url: str, name: str, scope: str
) -> None:
    with database.transaction(module_url) as connection:
        database.fetch_all(
            connection, "UPDATE rowcall.job_definitions SET job_type = 'lost' WHERE name = %(name)s", {"name": name}
        )
    assert call("POST", f"{path}/pause", scope=scope).status_code == 200
    assert call("POST", f"{path}/resume", scope=scope).status_code == 200
    assert call("DELETE", path, scope=scope).status_code == 204


def test_a_run_by_hand_is_found_where_the_answer_says_and_a_replay_is_200(
    nightly: dict[str, Any], call: Call, actors: dict[str, str], path: str, module_url: str, name: str
) -> None:
    assert nightly["revision"] == 1
    first = call("POST", f"{path}/run-now", scope="steer")
    again = call("POST", f"{path}/run-now", scope="steer")
    assert (first.status_code, again.status_code) == (202, 200)
    run = told(call("GET", first.headers["Location"]))
    assert told(first) == told(again) == run
    assert first.headers["Location"] == again.headers["Location"]
    assert (run["id"], run["job_type"], run["created_by"]) == (
        *(told(first)["id"], "cleanup_nightly", actors["steer"]),
    )
    with database.transaction(module_url) as connection:
        assert run["definition_id"] == row_of(connection, name)["id"]


def test_occurrences_come_with_what_became_of_them_the_latest_first(
    call: Call, path: str, module_url: str, name: str
) -> None:
    call("PUT", path, json={"job_type": "noop", "schedule": "@yearly"})
    assert rows(call("GET", f"{path}/occurrences")) == []
    with database.transaction(module_url) as connection:
        overdue(connection, name)
    call("POST", f"{path}/pause")
    occurred = rows(call("GET", f"{path}/occurrences"))
    assert [one["outcome"] for one in occurred] == ["enqueued", "missed", "missed"]
    assert [set(one) for one in occurred] == [
        {"nominal_at", "outcome", "reason", "run_id", "revision", "created_at"}
    ] * 3
    assert told(call("GET", f"/v1/runs/{occurred[0]['run_id']}"))["scheduled_for"] == occurred[0]["nominal_at"]
    pages, cursor = [], ""
    while cursor is not None:
        page = told(call("GET", f"{path}/occurrences?limit=1{cursor and f'&cursor={cursor}'}"))
        pages += page["items"]
        cursor = page["next"]
    assert pages == occurred
    for limit in ("0", "201", "x", "1e3", "NaN"):
        assert call("GET", f"{path}/occurrences?limit={limit}").status_code == 422


def test_a_request_to_run_now_can_be_repeated_under_its_key_and_only_for_the_same(call: Call, path: str) -> None:
    call("PUT", path, json={"job_type": "noop", "payload": {"at": "{time}"}})
    headers = {"Idempotency-Key": f"now of {path}"}
    first, second = (call("POST", f"{path}/run-now", headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 200)
    assert told(first)["id"] == told(second)["id"]
    assert second.headers["Idempotent-Replayed"] == "true"
    call("PUT", f"{path}-other", json={"job_type": "noop"})
    refused = call("POST", f"{path}-other/run-now", headers=headers)
    assert (refused.status_code, told(refused)["type"]) == (422, "urn:rowcall:problem:idempotency-key-reused")
