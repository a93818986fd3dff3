"""Clone: a new run with the same content, except for what the operator changes; once per key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.base.errors import JobTypeUnknown, KeyConflict, RunChanged, RunInvalid, RunNotFound, RunPruned
from rowcall.status import Status
from tests.support.rows import row_of, run_in

OPERATOR = Operator("a test", "request-1", "app")
LATER = datetime(2030, 1, 1, tzinfo=UTC)
ORIGINAL = {
    "payload": """'{"user_id": 1}'""",
    "queue": "'mail'",
    "priority": "-5",
    "idempotency_key": "'the original'",
    "result": "'{}'",
}
COPIED = ("job_type", "payload", "queue", "priority", "max_attempts")


def made(connection: PgConnection, run_id: int, **options: Any) -> Row:
    """Clone a run, and return the new one."""
    return row_of(connection, queue.clone(connection, run_id, OPERATOR, **options).run_id)


def runs(connection: PgConnection) -> int:
    found: int = fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs")
    return found


@pytest.mark.parametrize("status", Status)
def test_a_run_in_any_status_is_cloned_with_its_content_and_nothing_of_what_became_of_it(
    connection: PgConnection, status: Status
) -> None:
    run = run_in(connection, status, **ORIGINAL)
    clone = made(connection, run["id"])
    assert [clone[name] for name in COPIED] == [run[name] for name in COPIED]
    fresh = ("status", "attempts", "lease_no", "idempotency_key", "result", "definition_id", "created_by")
    assert [clone[name] for name in fresh] == ["queued", 0, 0, None, None, None, "a test"]
    assert clone["run_at"] == fetch_value(connection, "SELECT now()")
    assert row_of(connection, run["id"]) == run


@pytest.mark.parametrize(
    ("name", "value"),
    [("payload", {"user_id": 2}), ("run_at", LATER), ("queue", "slow"), ("priority", 0), ("max_attempts", 1)],
)
def test_what_is_to_be_other_is_other_and_the_rest_the_same(connection: PgConnection, name: str, value: object) -> None:
    run = run_in(connection, Status.DEAD, **ORIGINAL)
    clone = made(connection, run["id"], **{name: value})
    assert clone[name] == value
    assert [clone[other] for other in COPIED if other != name] == [run[other] for other in COPIED if other != name]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"payload": {"a": "\0"}}, "payload: cannot be stored as JSON"),
        ({"payload": {"a": "x" * 70_000}}, "payload: is 7.* bytes"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at: must have an offset"),
        (
            {"run_at": datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12)))},
            "run_at: must be a time in the years",
        ),
        ({"queue": "No Such"}, "queue: must be lower-case words"),
        ({"priority": 40_000}, "priority: must be a whole number"),
        ({"max_attempts": 0}, "max_attempts: must be a whole number"),
        ({"key": ""}, "idempotency_key: must be 1 to 255 printable characters"),
        ({"key": "a\0"}, "idempotency_key: must be 1 to 255 printable characters"),
    ],
)
def test_what_a_request_for_a_run_may_not_have_a_clone_may_not_have(
    connection: PgConnection, changes: dict[str, Any], complaint: str
) -> None:
    run = run_in(connection, Status.DEAD)
    with pytest.raises(RunInvalid, match=complaint):
        queue.clone(connection, run["id"], OPERATOR, **changes)
    assert runs(connection) == 1


def test_a_type_that_is_not_known_here_is_cloned_as_it_is_and_not_changed(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD, job_type="'of_tomorrow'")
    assert made(connection, run["id"])["job_type"] == "of_tomorrow"
    with pytest.raises(JobTypeUnknown, match="of_tomorrow"):
        queue.clone(connection, run["id"], OPERATOR, payload={})


def test_the_same_key_and_changes_again_are_the_same_clone(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD)
    first = queue.clone(connection, run["id"], OPERATOR, key="once", run_at=LATER)
    again = queue.clone(
        connection, run["id"], OPERATOR, key="once", run_at=LATER.astimezone(timezone(timedelta(hours=9)))
    )
    assert (first.replayed, again.replayed, again.run_id) == (False, True, first.run_id)
    assert row_of(connection, first.run_id)["idempotency_key"] == "once"
    assert runs(connection) == 2


@pytest.mark.parametrize("changes", [{"priority": 1}, {"payload": {}}, {"run_at": LATER}])
def test_the_same_key_with_other_changes_is_refused_and_leaves_nothing(
    connection: PgConnection, changes: dict[str, Any]
) -> None:
    run = run_in(connection, Status.DEAD)
    queue.clone(connection, run["id"], OPERATOR, key="once")
    with pytest.raises(KeyConflict):
        queue.clone(connection, run["id"], OPERATOR, key="once", **changes)
    assert runs(connection) == 2


def test_a_key_is_one_business_fact_whoever_asks_and_however(connection: PgConnection) -> None:
    run, other = (run_in(connection, Status.DEAD) for _ in range(2))
    queue.enqueue(connection, "noop", {}, key="asked for")
    queue.clone(connection, run["id"], OPERATOR, key="cloned")
    for run_id, key in ((run["id"], "asked for"), (other["id"], "cloned")):
        with pytest.raises(KeyConflict):
            queue.clone(connection, run_id, OPERATOR, key=key)
    with pytest.raises(KeyConflict):
        queue.enqueue(connection, "noop", {}, key="cloned")


def test_a_clone_is_audited_once_with_its_original_and_what_is_other(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD)
    for _ in range(2):
        clone = queue.clone(connection, run["id"], OPERATOR, key="once", priority=0, run_at=LATER)
    sql = "SELECT who, action, subject_id, before, after, request_id FROM rowcall.audit_log"
    assert [tuple(row.values()) for row in fetch_all(connection, sql)] == [
        (
            "a test",
            "clone",
            clone.run_id,
            {"cloned_from": run["id"]},
            {"priority": 0, "run_at": "2030-01-01T00:00:00+00:00"},
            "request-1",
        )
    ]


def test_a_clone_of_what_has_changed_since_it_was_seen_leaves_nothing_but_a_replay_is_one_still(
    connection: PgConnection,
) -> None:
    run = run_in(connection, Status.DEAD)
    seen = {queue.version_of(run)}
    made(connection, run["id"], expected=seen, key="once")
    queue.retry(connection, run["id"], OPERATOR)
    with pytest.raises(RunChanged):
        queue.clone(connection, run["id"], OPERATOR, expected=seen)
    assert runs(connection) == 2
    assert queue.clone(connection, run["id"], OPERATOR, expected=seen, key="once").replayed


def test_a_clone_that_was_made_is_found_though_its_original_was_pruned_since(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD)
    clone = queue.clone(connection, run["id"], OPERATOR, key="once")
    fetch_all(connection, "UPDATE rowcall.job_runs SET pruned_at = now() WHERE id = %(id)s", run)
    assert queue.clone(connection, run["id"], OPERATOR, key="once").run_id == clone.run_id
    with pytest.raises(RunPruned):
        queue.clone(connection, run["id"], OPERATOR, key="twice")


@pytest.mark.parametrize("run_id", [0, -1, 999_999, 2**63])
def test_of_a_run_that_is_not_there_there_is_no_clone(connection: PgConnection, run_id: int) -> None:
    with pytest.raises(RunNotFound):
        queue.clone(connection, run_id, OPERATOR)
