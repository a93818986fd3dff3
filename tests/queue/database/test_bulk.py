"""Bulk changes: each run changes as if it were changed alone, and locked runs are skipped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.errors import FilterInvalid, TransitionRefused
from rowcall.queue import Action, Bulk, Filter
from rowcall.queue.bulk import changed_of
from rowcall.queue.fragments import CHANNEL
from rowcall.status import Status
from tests.support.rows import at, row_of, run_in

OPERATOR = Operator("a test", "request-1")
ONE = {Action.RETRY: queue.retry, Action.CANCEL: queue.cancel_any}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

CASES = [(action, status) for action in Action for status in Status]
CAN = [(action, status) for action, status in CASES if status in action.statuses]


def done(connection: PgConnection, action: Action, **asked: Any) -> Bulk:
    options = {name: asked.pop(name) for name in [*asked] if name not in Filter.__dataclass_fields__}
    return queue.bulk(connection, action, Filter(**asked), OPERATOR, **options)


def audited(connection: PgConnection, run_id: int) -> list[Row]:
    sql = (
        "SELECT who, action, before, after, request_id FROM rowcall.audit_log"
        " WHERE subject_id = %(run_id)s AND subject = 'run'"
    )
    rows = fetch_all(connection, sql, {"run_id": run_id})
    for state in (row[side] for row in rows for side in ("before", "after")):
        state["run_at"] = datetime.fromisoformat(state["run_at"])
        asked = state["cancel_requested_at"]
        state["cancel_requested_at"] = asked and datetime.fromisoformat(asked)
    return rows


@pytest.mark.parametrize(("action", "status"), CAN)
def test_to_each_of_many_is_done_what_is_done_to_one(connection: PgConnection, action: Action, status: Status) -> None:
    columns = {"last_error": "'it broke'", "error_type": "'E'", "failed_at": "now()", "progress": "'{}'"}
    one, *many = (run_in(connection, status, queue=name, **columns) for name in ("'one'", "'many'", "'many'"))
    ONE[action](connection, one["id"], OPERATOR)
    outcome = done(connection, action, queue="many")
    assert (outcome.matched, sorted(outcome.ids), outcome.refused) == (2, [run["id"] for run in many], 0)
    for run in many:
        own = {"id": run["id"], "queue": "many"}
        assert row_of(connection, run["id"]) == {**row_of(connection, one["id"]), **own}
        assert audited(connection, run["id"]) == audited(connection, one["id"])


@pytest.mark.parametrize(("action", "status"), [case for case in CASES if case not in CAN])
def test_what_cannot_be_done_to_one_is_not_done_to_many(
    connection: PgConnection, action: Action, status: Status
) -> None:
    run = run_in(connection, status)
    with pytest.raises(TransitionRefused):
        ONE[action](connection, run["id"], OPERATOR)
    assert done(connection, action, everything=True).matched == 0
    assert changed_of(connection, action, [run["id"]], Filter(), OPERATOR) == {}
    assert row_of(connection, run["id"]) == run
    with pytest.raises(
        FilterInvalid, match=f"a {status} run does not allow {action.value[0].event}; these statuses do: "
    ):
        done(connection, action, status=(status,))


def test_what_was_pruned_is_not_retried(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD, pruned_at="now()")
    assert done(connection, Action.RETRY, everything=True) == Bulk(0, [], 0, None, False)
    assert changed_of(connection, Action.RETRY, [run["id"]], Filter(), OPERATOR) == {}


def test_who_was_asked_to_stop_is_not_asked_again(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, cancel_requested_at="now()")
    assert done(connection, Action.CANCEL, everything=True).matched == 0
    assert changed_of(connection, Action.CANCEL, [run["id"]], Filter(), OPERATOR) == {}


def test_of_those_that_were_met_only_those_that_still_match_are_changed(connection: PgConnection) -> None:
    mail, web = (run_in(connection, Status.DEAD, queue=name)["id"] for name in ("'mail'", "'web'"))
    changed = changed_of(connection, Action.RETRY, [mail, web], Filter(queue="mail"), OPERATOR)
    assert changed == {mail: Status.QUEUED}
    assert row_of(connection, web)["status"] == Status.DEAD


def test_others_that_match_and_were_not_met_are_left_alone(connection: PgConnection) -> None:
    met, other = (run_in(connection, Status.DEAD)["id"] for _ in range(2))
    assert changed_of(connection, Action.RETRY, [met], Filter(), OPERATOR) == {met: Status.QUEUED}
    assert row_of(connection, other)["status"] == Status.DEAD


def test_what_others_hold_is_passed_over_and_counted_as_refused(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        held, free = (run_in(connection, Status.DEAD)["id"] for _ in range(2))
    with database.transaction(fresh_url) as holder, database.transaction(fresh_url) as connection:
        fetch_all(holder, "SELECT id FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", {"id": held})
        fetch_all(connection, "SET LOCAL lock_timeout = '5s'")
        outcome = done(connection, Action.RETRY, everything=True)
        assert (outcome.matched, outcome.ids, outcome.refused) == (2, [free], 1)
        assert row_of(connection, held)["status"] == Status.DEAD


def test_a_dry_run_tells_what_would_be_changed_and_changes_nothing(connection: PgConnection) -> None:
    runs = [run_in(connection, Status.DEAD, created_at=at(NOON + timedelta(hours=number))) for number in range(3)]
    would = done(connection, Action.RETRY, everything=True, dry_run=True)
    assert would == Bulk(3, [run["id"] for run in reversed(runs)], 0, None, dry_run=True)
    assert [row_of(connection, run["id"]) for run in runs] == runs
    assert fetch_all(connection, "SELECT id FROM rowcall.audit_log") == []
    assert done(connection, Action.RETRY, everything=True).ids == would.ids


def test_the_newest_so_many_are_changed_and_the_next_call_goes_on(connection: PgConnection) -> None:
    runs = [run_in(connection, Status.DEAD, created_at=at(NOON + timedelta(hours=hour)))["id"] for hour in range(5)]
    first = done(connection, Action.RETRY, everything=True, limit=2)
    second = done(connection, Action.RETRY, everything=True, limit=2, cursor=first.next)
    last = done(connection, Action.RETRY, everything=True, limit=2, cursor=second.next)
    assert [*first.ids, *second.ids, *last.ids] == runs[::-1]
    assert last.next is None


def test_a_walk_that_ends_at_its_bound_says_that_there_may_be_more(connection: PgConnection) -> None:
    oldest = run_in(connection, Status.DEAD, created_at=at(NOON - timedelta(hours=9)))["id"]
    for hours in range(3):
        run_in(connection, Status.SUCCEEDED, created_at=at(NOON + timedelta(hours=hours)))
    first = done(connection, Action.RETRY, everything=True, most=2)
    assert (first.matched, first.next is None) == (0, False)
    assert done(connection, Action.RETRY, everything=True, most=2, cursor=first.next).ids == [oldest]


@pytest.mark.parametrize("wanted", [{}, {"status": ()}, {"payload": {}}], ids=["nothing", "no status", "any payload"])
def test_all_runs_are_meant_only_where_that_is_said(connection: PgConnection, wanted: dict[str, Any]) -> None:
    run_in(connection, Status.DEAD)
    with pytest.raises(FilterInvalid, match="filter: matches every run"):
        done(connection, Action.RETRY, **wanted)
    assert done(connection, Action.RETRY, **wanted, everything=True).matched == 1


def test_workers_are_woken_for_many_that_are_due(fresh_url: str) -> None:
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
