"""An operation from its preview to its end: canary, stop, continue, keys, and what it leaves behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.errors import FilterInvalid, OperationKeyConflict, OperationNotFound, OperationRefused, RunInvalid
from rowcall.base.errors.sentences import has_status
from rowcall.queue import operations
from rowcall.queue.operations import Action, OperationStatus
from rowcall.queue.operations.carry_out import KEPT, REFUSALS_KEPT
from rowcall.queue.operations.state import SOURCES, OperationEvent
from rowcall.queue.retention.erase import erase
from rowcall.queue.retention.prune import delete_operations
from rowcall.queue.views import cursors
from rowcall.queue.views.filters import Filter, from_json, to_json
from rowcall.schema.tables import operations as table
from rowcall.status import Status
from tests.support.operations import OPERATOR, done, finish, requested, start, statuses
from tests.support.rows import row_of, run_in

STEER = {OperationEvent.STOP: operations.stop, OperationEvent.CONTINUE: operations.continue_operation}
SEVEN = """'{"user_id": 7}'"""


def dead(connection: PgConnection, number: int) -> list[int]:
    """Insert dead runs, the newest first."""
    return [run_in(connection, Status.DEAD)["id"] for _ in range(number)][::-1]


def audited(connection: PgConnection, operation_id: int) -> list[Row]:
    sql = """
    SELECT who, action, before, after, request_id FROM rowcall.audit_log
    WHERE subject = 'operation' AND subject_id = %(id)s ORDER BY id
    """
    return fetch_all(connection, sql, {"id": operation_id})


def set_status(connection: PgConnection, operation_id: int, status: OperationStatus) -> None:
    ended = "now()" if status is OperationStatus.FINISHED else "NULL"
    sql = f"UPDATE rowcall.operations SET status = %(status)s, finished_at = {ended} WHERE id = %(id)s"
    fetch_all(connection, sql, {"id": operation_id, "status": status})


def test_a_start_enqueues_the_run_that_carries_it_out_and_is_audited(connection: PgConnection) -> None:
    dead(connection, 2)
    operation_id = start(connection, Action.RETRY, status=(Status.DEAD,), reason="mail is back")
    operation = operations.get_operation(connection, operation_id)
    assert (operation["status"], operation["filter"], operation["matched"]) == ("running", {"status": ["dead"]}, 2)
    run = row_of(connection, operation["run_id"])
    assert (run["job_type"], run["queue"], run["payload"]) == (
        "carry_out_operation",
        "maintenance",
        {"operation_id": operation_id},
    )
    [row] = audited(connection, operation_id)
    assert (row["who"], row["action"], row["request_id"]) == ("a test", "start", "request-1")
    assert row["after"] == {
        "action": "retry",
        "status": ["dead"],
        "matched": 2,
        "canary": False,
        "reason": "mail is back",
    }


def test_each_run_is_audited_under_its_operation(connection: PgConnection) -> None:
    [run_id] = dead(connection, 1)
    operation = done(connection, Action.RETRY, everything=True)
    sql = "SELECT who, action, subject_id, request_id FROM rowcall.audit_log WHERE subject = 'run' ORDER BY id"
    assert [tuple(row.values()) for row in fetch_all(connection, sql)] == [
        ("a test", "retry", run_id, f"operation-{operation['id']}"),
        ("a test", "cancel", operation["run_id"], f"operation-{operation['id']}"),
    ]


def test_a_canary_is_changed_alone_and_the_others_when_an_operator_continues(connection: PgConnection) -> None:
    runs = dead(connection, 3)
    waiting = done(connection, Action.RETRY, everything=True, canary=True)
    assert (waiting["status"], waiting["changed"], waiting["canary_run_id"]) == ("waiting", 1, runs[0])
    assert statuses(connection, runs) == ["queued", "dead", "dead"]
    assert finish(connection, waiting["id"]) == waiting
    going = operations.continue_operation(connection, waiting["id"], OPERATOR)
    assert (going["status"], going["run_id"] > waiting["run_id"]) == ("running", True)
    assert finish(connection, waiting["id"])["changed"] == 3
    assert statuses(connection, runs) == ["queued"] * 3


def test_a_canary_without_others_needs_nobody(connection: PgConnection) -> None:
    assert done(connection, Action.RETRY, everything=True, canary=True)["status"] == "finished"
    dead(connection, 1)
    alone = done(connection, Action.RETRY, everything=True, canary=True)
    assert (alone["status"], alone["changed"]) == ("finished", 1)


def test_a_stop_comes_before_the_next_batch_and_continuing_goes_on_behind_the_last(connection: PgConnection) -> None:
    runs = dead(connection, 5)
    operation_id = start(connection, Action.RETRY, everything=True)
    begun = operations.carry_on(connection, operation_id, batch=2)
    assert cursors.read(KEPT, begun["cursor"]), "whatever filters the next version of Rowcall has"
    stopped = operations.stop(connection, operation_id, OPERATOR)
    assert (stopped["status"], stopped["changed"]) == ("stopped", 2)
    assert operations.carry_on(connection, operation_id)["changed"] == 2
    assert statuses(connection, runs) == ["queued"] * 2 + ["dead"] * 3
    operations.continue_operation(connection, operation_id, OPERATOR)
    assert finish(connection, operation_id)["changed"] == 5
    assert [row["action"] for row in audited(connection, operation_id)] == ["start", "stop", "continue"]
    assert audited(connection, operation_id)[1]["before"] == {"status": "running", "changed": 2, "refused": 0}


def test_a_canary_that_was_stopped_before_its_first_run_is_still_a_canary(connection: PgConnection) -> None:
    dead(connection, 2)
    operation_id = start(connection, Action.RETRY, everything=True, canary=True)
    operations.stop(connection, operation_id, OPERATOR)
    assert operations.continue_operation(connection, operation_id, OPERATOR)["status"] == "canary"
    assert finish(connection, operation_id)["status"] == "waiting"


@pytest.mark.parametrize("status", OperationStatus)
@pytest.mark.parametrize("event", OperationEvent)
def test_a_status_either_allows_an_event_or_names_what_it_allows(
    connection: PgConnection, event: OperationEvent, status: OperationStatus
) -> None:
    operation_id = start(connection, Action.RETRY, everything=True)
    set_status(connection, operation_id, status)
    if status in SOURCES[event]:
        assert STEER[event](connection, operation_id, OPERATOR)["status"] != status
        return
    before = operations.get_operation(connection, operation_id)
    with pytest.raises(
        OperationRefused, match=f"operation {operation_id} {has_status(status)}: {event} is not allowed"
    ):
        STEER[event](connection, operation_id, OPERATOR)
    assert operations.get_operation(connection, operation_id) == before
    assert len(audited(connection, operation_id)) == 1


def test_the_table_knows_the_statuses_and_actions_of_the_code() -> None:
    checks = {str(one.name): str(one.sqltext) for one in table.constraints if hasattr(one, "sqltext")}
    for name, words in (("status_known", OperationStatus), ("action_known", [action.word for action in Action])):
        known = ", ".join(f"'{word}'" for word in words)
        assert checks[f"operations_{name}"].endswith(f"IN ({known})")


def test_runs_that_are_enqueued_later_do_not_belong_to_it(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        before = dead(connection, 2)
        operation_id = start(connection, Action.RETRY, everything=True)
    with database.transaction(fresh_url) as connection:
        after = dead(connection, 1)
        assert finish(connection, operation_id)["changed"] == 2
        assert statuses(connection, [*before, *after]) == ["queued", "queued", "dead"]


def test_a_repeated_request_finds_its_operation_and_another_one_is_refused(connection: PgConnection) -> None:
    dead(connection, 1)
    asked = requested(Action.RETRY, everything=True)
    first = operations.start(connection, asked, OPERATOR, "once")
    again = operations.start(connection, asked, OPERATOR, "once")
    assert (first.replayed, again.replayed, again.operation["id"]) == (False, True, first.operation["id"])
    with pytest.raises(OperationKeyConflict, match=f"belongs to operation {first.operation['id']}"):
        operations.start(connection, requested(Action.CANCEL, everything=True), OPERATOR, "once")
    with pytest.raises(RunInvalid, match="idempotency_key"):
        operations.start(connection, asked, OPERATOR, "")
    assert len(fetch_all(connection, "SELECT id FROM rowcall.job_runs WHERE queue = 'maintenance'")) == 1


@pytest.mark.parametrize(
    ("action", "options", "field"),
    [
        (Action.RESCHEDULE, {}, "run_at"),
        (Action.RETRY, {"run_at": datetime(2040, 1, 1, tzinfo=UTC)}, "run_at"),
        (Action.RESCHEDULE, {"run_at": datetime(2040, 1, 1)}, "run_at"),
        (Action.RETRY, {"max_runs": 0}, "max_runs"),
        (Action.RETRY, {"max_runs": 2**31}, "max_runs"),
        (Action.RETRY, {"reason": ""}, "reason"),
        (Action.RETRY, {"reason": "a\0"}, "reason"),
        (Action.RETRY, {"reason": "a" * 501}, "reason"),
    ],
)
def test_what_cannot_be_requested_is_named(action: Action, options: dict[str, Any], field: str) -> None:
    with pytest.raises(FilterInvalid) as refused:
        requested(action, everything=True, **options)
    assert [*refused.value.fields] == [field]


def test_a_filter_is_stored_as_it_was_sent() -> None:
    criteria = Filter(status=(Status.DEAD,), payload={"user_id": 7}, created_after=datetime(2026, 1, 1, tzinfo=UTC))
    assert from_json(to_json(criteria)) == criteria
    assert to_json(Filter()) == {}


def test_operations_are_listed_newest_first_a_page_at_a_time(connection: PgConnection) -> None:
    ids = [start(connection, Action.RETRY, everything=True) for _ in range(3)]
    first = operations.list_operations(connection, 2)
    assert [row["id"] for row in first.rows] == ids[:0:-1]
    last = operations.list_operations(connection, 2, first.next)
    assert ([row["id"] for row in last.rows], last.next) == ([ids[0]], None)
    for nothing in (0, 999, 2**63):
        with pytest.raises(OperationNotFound):
            operations.get_operation(connection, nothing)


def test_refusals_are_counted_and_so_many_are_kept(connection: PgConnection) -> None:
    fact = {"natural_key": "'fact'", "unique_mode": "'until_failed'"}
    run_in(connection, Status.QUEUED, **fact)
    refused = [run_in(connection, Status.DEAD, **fact)["id"] for _ in range(3)]
    operation_id = start(connection, Action.RETRY, everything=True)
    sql = """
    INSERT INTO rowcall.operation_refusals (operation_id, run_id, reason)
    SELECT %(id)s, 1000000 + number, 'r' FROM generate_series(1, %(kept)s) AS number
    """
    fetch_all(connection, sql, {"id": operation_id, "kept": REFUSALS_KEPT - 2})
    assert finish(connection, operation_id)["refused"] == 3
    page = operations.refusals_page(connection, operation_id, 1)
    second = operations.refusals_page(connection, operation_id, 1, page.next)
    third = operations.refusals_page(connection, operation_id, 1, second.next)
    kept = [row["run_id"] for row in (*page.rows, *second.rows)]
    assert {*kept} < {*refused}
    assert third.rows[0]["run_id"] == 1000001


def test_an_operation_says_what_it_waits_for(connection: PgConnection) -> None:
    dead(connection, 2)
    operation_id = start(connection, Action.RETRY, everything=True, canary=True)

    def why() -> tuple[str, tuple[str, ...]] | None:
        return operations.why_it_waits(connection, operations.get_operation(connection, operation_id), {}, 30)

    unserved = why()
    assert unserved
    assert "no live worker takes carry_out_operation from queue maintenance" in unserved[0]
    run_id = operations.get_operation(connection, operation_id)["run_id"]
    queue.cancel(connection, run_id, OPERATOR)
    ended = why()
    assert ended
    assert f"the run that carries it out, {run_id}, has ended: cancelled" in ended[0]
    assert {f"rowcall runs retry {run_id}", f"rowcall operations continue {operation_id}"} <= {*ended[1]}
    canary = finish(connection, operation_id)["canary_run_id"]
    waiting = why()
    became = f"its canary, run {canary}, was changed, and its status is now queued"
    assert waiting == (
        f"{became}; the operation is waiting for an operator",
        (f"rowcall runs show {canary}", f"rowcall operations continue {operation_id}"),
    )
    operations.stop(connection, operation_id, OPERATOR)
    assert why() == ("an operator has stopped it", (f"rowcall operations continue {operation_id}",))
    operations.continue_operation(connection, operation_id, OPERATOR)
    finish(connection, operation_id)
    assert why() is None


def test_old_operations_are_deleted_with_their_refusals_and_active_ones_stay(connection: PgConnection) -> None:
    kept = []
    for status in OperationStatus:
        for age in (timedelta(days=1), timedelta(days=100)):
            operation_id = start(connection, Action.RETRY, everything=True)
            set_status(connection, operation_id, status)
            sql = "UPDATE rowcall.operations SET updated_at = now() - %(age)s WHERE id = %(id)s"
            fetch_all(connection, sql, {"id": operation_id, "age": age})
            if age.days == 1 or status in operations.ACTIVE:
                kept.append(operation_id)
    sql = """
    INSERT INTO rowcall.operation_refusals (operation_id, run_id, reason) SELECT id, 1, 'r' FROM rowcall.operations
    """
    fetch_all(connection, sql)
    delete_operations(connection, 90)
    assert [row["id"] for row in operations.list_operations(connection).rows] == kept[::-1]
    assert len(fetch_all(connection, "SELECT operation_id FROM rowcall.operation_refusals")) == len(kept)


def test_an_erased_payload_is_erased_from_filters_too_and_those_operations_end(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD, payload=SEVEN)
    mine = start(connection, Action.RETRY, payload={"user_id": 7}, job_type="noop")
    other = start(connection, Action.RETRY, payload={"user_id": 8})
    erase(connection, [run["id"]], OPERATOR)
    erased, kept = (operations.get_operation(connection, one) for one in (mine, other))
    assert (erased["status"], erased["filter"]) == ("finished", {"job_type": "noop"})
    assert "payload" not in audited(connection, mine)[0]["after"]
    assert (kept["status"], kept["filter"]) == ("running", {"payload": {"user_id": 8}})
    assert audited(connection, other)[0]["after"]["payload"] == {"user_id": 8}
    # It would match other runs now, so it does nothing more.
    assert finish(connection, mine)["changed"] == 0
