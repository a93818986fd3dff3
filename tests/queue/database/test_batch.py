"""A batch: runs of any types are enqueued together, all or none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import KeyConflict, RunInvalid
from rowcall.queue import BatchRun, enqueue_batch
from tests.support.rows import row_of

OPERATOR = Operator("api:shop (1)", "request-1", "api:shop")

LATER = datetime(2100, 1, 1, 9, tzinfo=UTC)


def count(connection: PgConnection) -> int:
    return int(fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs"))


def test_runs_of_several_types_and_options_are_enqueued_in_their_order(connection: PgConnection) -> None:
    runs = [
        BatchRun("noop", {"n": 1}, idempotency_key="one"),
        BatchRun("prune_runs", {"archive": True}),
        BatchRun("noop", {"n": 2}, run_at=LATER, queue="mail", priority=5, max_attempts=2),
        BatchRun("noop", {"n": 3}),
    ]
    outcomes = enqueue_batch(connection, OPERATOR, runs)
    rows = [row_of(connection, outcome.run_id) for outcome in outcomes]
    assert [outcome.replayed for outcome in outcomes] == [False] * 4
    assert [row["job_type"] for row in rows] == ["noop", "prune_runs", "noop", "noop"]
    assert [row["payload"].get("n") for row in rows] == [1, None, 2, 3]
    assert [rows[2][name] for name in ("run_at", "queue", "priority", "max_attempts")] == [LATER, "mail", 5, 2]
    assert {row["created_by"] for row in rows} == {OPERATOR.who}
    assert (rows[0]["idempotency_key"], rows[0]["key_owner"]) == ("one", OPERATOR.key_owner)
    assert outcomes[0].run_id < outcomes[3].run_id


def test_a_repeated_batch_is_a_replay_even_in_another_order_and_with_new_runs(connection: PgConnection) -> None:
    first = [BatchRun("noop", {"n": n}, idempotency_key=f"again {n}", priority=n) for n in range(3)]
    before = enqueue_batch(connection, OPERATOR, first)
    new = BatchRun("noop", {"n": 3}, idempotency_key="again 3")
    after = enqueue_batch(connection, OPERATOR, [*reversed(first), new])
    assert [outcome.run_id for outcome in after[:3]] == [outcome.run_id for outcome in reversed(before)]
    assert [outcome.replayed for outcome in after] == [True, True, True, False]


def test_the_same_key_twice_in_a_batch_is_one_run(connection: PgConnection) -> None:
    one, other = enqueue_batch(connection, OPERATOR, [BatchRun("noop", {}, idempotency_key="twin")] * 2)
    assert (one.run_id, one.replayed, other.replayed) == (other.run_id, False, True)


@pytest.mark.parametrize("different", [{"payload": {"n": 2}}, {"priority": 1}, {"run_at": LATER}], ids=str)
def test_a_conflict_refuses_all_and_has_the_place_of_its_run(
    connection: PgConnection, different: dict[str, object]
) -> None:
    enqueue_batch(connection, OPERATOR, [BatchRun("noop", {"n": 1}, idempotency_key="taken")])
    before = count(connection)
    conflicting = BatchRun(**{"job_type": "noop", "payload": {"n": 1}, "idempotency_key": "taken", **different})  # type: ignore[arg-type]  # a field of any type
    with pytest.raises(KeyConflict) as refused:
        enqueue_batch(connection, OPERATOR, [BatchRun("noop"), BatchRun("noop", queue="mail"), conflicting])
    assert refused.value.places == [("runs", 2)]
    assert count(connection) == before


def test_everything_that_is_invalid_in_all_runs_is_named_at_once_and_nothing_enqueued(connection: PgConnection) -> None:
    before = count(connection)
    runs = [
        BatchRun("noop"),
        BatchRun("nonsense"),
        BatchRun("prune_runs", {"colour": "red"}),
        BatchRun("noop", queue="No Queue", priority=10**6),
    ]
    with pytest.raises(RunInvalid) as refused:
        enqueue_batch(connection, OPERATOR, runs)
    wrong = refused.value.fields["runs"]
    assert isinstance(wrong, dict)
    assert {place: set(fields) for place, fields in wrong.items()} == {
        1: {"job_type"},
        2: {"payload"},
        3: {"queue", "priority"},
    }
    assert count(connection) == before


def test_a_new_run_of_an_admins_type_is_audited_once(connection: PgConnection) -> None:
    run = BatchRun("prune_runs", {"archive": True}, idempotency_key="audited")
    for _ in range(2):
        [outcome] = enqueue_batch(connection, OPERATOR, [run])
    query = "SELECT who, action FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = %(id)s"
    assert fetch_all(connection, query, {"id": outcome.run_id}) == [{"who": OPERATOR.who, "action": "enqueue"}]
