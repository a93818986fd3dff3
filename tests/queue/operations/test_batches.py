"""The runs of an operation: each changes as if it were changed alone, or is refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.errors import FilterInvalid, TransitionRefused
from rowcall.job_types.builtin import NOOP
from rowcall.queue import Filter, operations
from rowcall.queue.fragments import CHANNEL
from rowcall.queue.operations import Action
from rowcall.queue.operations.batch import LOCKED, NO_MATCH, change_batch
from rowcall.status import Status
from tests.support.locks import wait_for_a_waiting_session
from tests.support.operations import OPERATOR, done, finish, refusals, start, statuses
from tests.support.rows import at, row_of, run_in

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2040, 1, 1, tzinfo=UTC)

ONE: dict[Action, Callable[..., Row]] = {
    Action.RETRY: queue.retry,
    Action.CANCEL: queue.cancel_any,
    Action.RUN_NOW: queue.run_now,
    Action.RESCHEDULE: partial(queue.reschedule, run_at=LATER),
}
OPTIONS: dict[Action, dict[str, Any]] = {Action.RESCHEDULE: {"run_at": LATER}}

CASES = [(action, status) for action in Action for status in Status]
CAN = [(action, status) for action, status in CASES if status in action.statuses]


def changed(connection: PgConnection, action: Action, run_ids: list[int], **criteria: Any) -> set[int]:
    """Change a batch of these runs."""
    more = OPTIONS.get(action, {})
    return change_batch(connection, action, run_ids, Filter(**criteria), OPERATOR, **more).changed


def audited(connection: PgConnection, run_id: int) -> list[Row]:
    sql = "SELECT who, action, before, after FROM rowcall.audit_log WHERE subject_id = %(run_id)s AND subject = 'run'"
    rows = fetch_all(connection, sql, {"run_id": run_id})
    for state in (row[side] for row in rows for side in ("before", "after")):
        state["run_at"] = datetime.fromisoformat(state["run_at"])
        asked = state["cancel_requested_at"]
        state["cancel_requested_at"] = asked and datetime.fromisoformat(asked)
    return rows


@pytest.mark.parametrize(("action", "status"), CAN)
def test_to_each_of_many_is_done_what_is_done_to_one(connection: PgConnection, action: Action, status: Status) -> None:
    columns = {"last_error": "'it broke'", "error_type": "'E'", "failed_at": "now()", "progress": "'{}'"}
    columns["run_at"] = "now() + interval '1 hour'"
    one, *many = (run_in(connection, status, queue=name, **columns) for name in ("'one'", "'many'", "'many'"))
    ONE[action](connection, one["id"], OPERATOR)
    operation = done(connection, action, queue="many", **OPTIONS.get(action, {}))
    assert (operation["status"], operation["matched"], operation["changed"]) == ("finished", 2, 2)
    for run in many:
        own = {"id": run["id"], "queue": "many", "created_at": run["created_at"]}
        assert row_of(connection, run["id"]) == {**row_of(connection, one["id"]), **own}
        assert audited(connection, run["id"]) == audited(connection, one["id"])


@pytest.mark.parametrize(("action", "status"), [case for case in CASES if case not in CAN])
def test_what_cannot_be_done_to_one_is_not_done_to_many(
    connection: PgConnection, action: Action, status: Status
) -> None:
    run, options = run_in(connection, status), OPTIONS.get(action, {})
    with pytest.raises(TransitionRefused) as refused:
        ONE[action](connection, run["id"], OPERATOR)
    assert done(connection, action, everything=True, **options)["matched"] == 0
    outcome = change_batch(connection, action, [run["id"]], Filter(), OPERATOR, **options)
    assert (outcome.changed, outcome.refused) == (set(), {run["id"]: str(refused.value)})
    assert row_of(connection, run["id"]) == run
    with pytest.raises(
        FilterInvalid, match=f"a {status} run does not allow {action.value[0].event}; these statuses do: "
    ):
        start(connection, action, status=(status,), **options)


def test_a_pruned_run_is_not_retried(connection: PgConnection) -> None:
    run_in(connection, Status.DEAD, pruned_at="now()")
    assert done(connection, Action.RETRY, everything=True)["matched"] == 0


def test_a_run_that_was_asked_to_stop_is_not_asked_again(connection: PgConnection) -> None:
    run_in(connection, Status.RUNNING, cancel_requested_at="now()")
    assert done(connection, Action.CANCEL, everything=True)["matched"] == 0


def test_a_run_that_is_due_keeps_its_place_when_others_are_made_due(connection: PgConnection) -> None:
    due = run_in(connection, Status.QUEUED)
    run_in(connection, Status.QUEUED, run_at="now() + interval '1 hour'")
    assert done(connection, Action.RUN_NOW, everything=True)["changed"] == 1
    assert row_of(connection, due["id"]) == due


def test_an_operation_does_not_change_the_run_that_carries_it_out(connection: PgConnection) -> None:
    operation = done(connection, Action.CANCEL, everything=True)
    assert (operation["matched"], operation["changed"], operation["refused"]) == (0, 0, 0)


def test_a_run_that_no_longer_matches_is_left_with_the_reason(connection: PgConnection) -> None:
    mail, web = (run_in(connection, Status.DEAD, queue=name)["id"] for name in ("'mail'", "'web'"))
    outcome = change_batch(connection, Action.RETRY, [mail, web, 999], Filter(queue="mail"), OPERATOR)
    assert outcome.changed == {mail}
    assert outcome.refused == {web: NO_MATCH, 999: "there is no run 999; `rowcall runs list` shows all runs"}
    assert row_of(connection, web)["status"] == Status.DEAD


def test_other_runs_that_match_are_left_alone(connection: PgConnection) -> None:
    met, other = (run_in(connection, Status.DEAD)["id"] for _ in range(2))
    assert changed(connection, Action.RETRY, [met]) == {met}
    assert row_of(connection, other)["status"] == Status.DEAD


def test_a_run_that_another_transaction_has_locked_is_refused_and_the_others_change(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        held, again, free = (run_in(connection, Status.DEAD)["id"] for _ in range(3))
    with database.transaction(fresh_url) as holder, database.transaction(fresh_url) as connection:
        fetch_all(holder, "SELECT id FROM rowcall.job_runs WHERE id = ANY(%(ids)s) FOR UPDATE", {"ids": [held, again]})
        operation = done(connection, Action.RETRY, everything=True)
        assert (operation["matched"], operation["changed"], operation["refused"]) == (3, 1, 2)
        assert refusals(connection, operation) == {held: LOCKED, again: LOCKED}
        assert statuses(connection, [held, again, free]) == ["dead", "dead", "queued"]


def test_a_run_whose_natural_key_another_run_holds_is_refused_with_that_run(connection: PgConnection) -> None:
    fact = {"natural_key": "'fact'", "unique_mode": "'until_failed'"}
    left = run_in(connection, Status.DEAD, **fact)["id"]
    holder = run_in(connection, Status.QUEUED, **fact)["id"]
    free = run_in(connection, Status.DEAD)["id"]
    operation = done(connection, Action.RETRY, everything=True)
    assert (operation["changed"], operation["refused"]) == (1, 1)
    [(refused, reason)] = refusals(connection, operation).items()
    assert (refused, f"run {holder} holds the natural key" in reason) == (left, True)
    assert statuses(connection, [left, free]) == ["dead", "queued"]


@pytest.mark.parametrize("criteria", [{}, {"status": ()}, {"payload": {}}], ids=["nothing", "no status", "any payload"])
def test_all_runs_are_meant_only_where_that_is_said(connection: PgConnection, criteria: dict[str, Any]) -> None:
    run_in(connection, Status.DEAD)
    with pytest.raises(FilterInvalid, match="filter: matches every run"):
        start(connection, Action.RETRY, **criteria)
    assert done(connection, Action.RETRY, **criteria, everything=True)["changed"] == 1


@pytest.mark.parametrize("batch", [1, 2, 3, 500])
def test_batches_of_any_size_change_each_run_once_the_newest_first(connection: PgConnection, batch: int) -> None:
    runs = [run_in(connection, Status.DEAD, created_at=at(NOON + timedelta(hours=hour)))["id"] for hour in range(6)]
    operation_id = start(connection, Action.RETRY, everything=True, max_runs=5)
    operation = queue.operations.carry_on(connection, operation_id, batch)
    newest_first = statuses(connection, runs[::-1])
    assert newest_first == ["queued"] * min(batch, 5) + ["dead"] * (6 - min(batch, 5))
    while operation["status"] == "running":
        operation = queue.operations.carry_on(connection, operation_id, batch)
    assert (operation["changed"], operation["status"]) == (5, "finished")
    assert len(fetch_all(connection, "SELECT id FROM rowcall.audit_log WHERE action = 'retry'")) == 5


def test_a_batch_that_scans_to_its_limit_goes_on_behind_it(connection: PgConnection) -> None:
    oldest = run_in(connection, Status.DEAD, created_at=at(NOON - timedelta(hours=9)))["id"]
    for hours in range(5):
        run_in(connection, Status.SUCCEEDED, created_at=at(NOON + timedelta(hours=hours)))
    operation_id = start(connection, Action.RETRY, everything=True, canary=True)
    first = queue.operations.carry_on(connection, operation_id, scanned=2)
    assert (first["status"], first["changed"], first["canary_run_id"]) == ("canary", 0, None)
    operation = done(connection, Action.RETRY, everything=True, scanned=2)
    assert (operation["changed"], statuses(connection, [oldest])) == (1, ["queued"])


def test_workers_are_woken_for_runs_that_are_due(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.DEAD)
        run_in(connection, Status.QUEUED)
    listener = database.connect(fresh_url)
    listener.autocommit = True
    fetch_all(listener, f"LISTEN {CHANNEL}")
    for action, woken in ((Action.CANCEL, 0), (Action.RETRY, 1)):
        with database.transaction(fresh_url) as connection:
            done(connection, action, everything=True)
        fetch_all(listener, "SELECT 1")
        assert len(listener.notifies) == woken
    listener.close()


BEGIN = """
UPDATE rowcall.job_runs SET status = 'running', locked_by = 'worker-1', locked_until = now() + interval '2 minutes'
WHERE id = %(id)s
"""


@pytest.mark.parametrize(("begun", "status"), [(False, "cancelled"), (True, "running")])
def test_the_run_that_need_not_carry_an_operation_out_any_more_is_cancelled_unless_it_has_begun(
    connection: PgConnection, begun: bool, status: str
) -> None:
    run_in(connection, Status.DEAD)
    operation_id = start(connection, Action.RETRY, everything=True)
    carrier = operations.get_operation(connection, operation_id)["run_id"]
    if begun:
        fetch_all(connection, BEGIN, {"id": carrier})
    finish(connection, operation_id)
    assert row_of(connection, carrier)["status"] == status


def test_two_that_carry_one_operation_out_take_turns(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        for _ in range(2):
            run_in(connection, Status.DEAD)
        operation_id = start(connection, Action.RETRY, everything=True)
    with database.transaction(fresh_url) as first, ThreadPoolExecutor(1) as thread:
        operations.carry_on(first, operation_id, batch=1)
        second = thread.submit(carried_on, fresh_url, operation_id)
        wait_for_a_waiting_session(fresh_url)
        first.commit()
        assert second.result() == (2, 0)


def carried_on(url: str, operation_id: int) -> tuple[int, int]:
    with database.transaction(url) as connection:
        operation = operations.carry_on(connection, operation_id, batch=1)
    return operation["changed"], operation["refused"]


def test_an_operation_changes_the_run_that_answered_the_request_with_a_key(connection: PgConnection) -> None:
    once = replace(NOOP, name="once", key=lambda payload: f"once:{payload['n']}")
    other = queue.enqueue(connection, once, {"n": 2}, key="other").run_id
    run, same = (queue.enqueue(connection, once, {"n": 1}, key=key).run_id for key in ("first", "second"))
    assert run == same
    started = operations.start(connection, operations.Requested(Action.CANCEL, Filter(key="second")), OPERATOR, None)
    assert finish(connection, started.operation["id"])["changed"] == 1
    assert statuses(connection, [run, other]) == [Status.CANCELLED, Status.QUEUED]
