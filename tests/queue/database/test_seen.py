"""Changes with an expected version: a run that has changed since the operator read it stays as it is."""

from __future__ import annotations

import threading

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import RunChanged
from rowcall.status import Status
from tests.queue.database.acts import OPERATOR
from tests.support.locks import wait_for_a_waiting_session
from tests.support.rows import row_of, run_in

STEERED = {
    Status.DEAD: queue.retry,
    Status.QUEUED: queue.run_now,
    Status.FAILED: queue.cancel,
    Status.RUNNING: queue.ask_to_cancel,
}


@pytest.mark.parametrize("status", STEERED)
def test_a_run_is_changed_where_it_is_as_it_was_seen(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status)
    assert STEERED[status](connection, run["id"], OPERATOR, {"another", queue.version_of(run)})


@pytest.mark.parametrize("status", STEERED)
def test_a_run_that_is_not_as_it_was_seen_is_left_as_it_is_and_told(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status)
    version = queue.version_of(run)
    with pytest.raises(
        RunChanged, match=f"run {run['id']} has changed since you read it; its version is now {version}:"
    ) as refusal:
        STEERED[status](connection, run["id"], OPERATOR, {"another"})
    assert refusal.value.version == version
    assert row_of(connection, run["id"]) == run
    assert fetch_all(connection, "SELECT id FROM rowcall.audit_log") == []


@pytest.mark.parametrize("force", [False, True])
def test_a_running_run_is_called_off_as_it_was_seen_or_not_at_all(connection: PgConnection, force: bool) -> None:
    run = run_in(connection, Status.RUNNING)
    with pytest.raises(RunChanged):
        queue.cancel_any(connection, run["id"], OPERATOR, {"another"}, force=force)
    now = queue.cancel_any(connection, run["id"], OPERATOR, {queue.version_of(run)}, force=force)
    assert now["status"] == (Status.CANCELLED if force else Status.RUNNING)
    assert now["cancel_requested_at"] is not None


def test_what_changes_a_run_meanwhile_is_waited_for_and_seen(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        run = run_in(connection, Status.DEAD)
    outcomes: list[object] = []

    def retry() -> None:
        try:
            with database.transaction(module_url) as connection:
                outcomes.append(queue.retry(connection, run["id"], Operator("late"), {queue.version_of(run)}))
        except RunChanged as refusal:
            outcomes.append(refusal.version)

    late = threading.Thread(target=retry)
    with database.transaction(module_url) as first:
        changed = queue.retry(first, run["id"], Operator("first"))
        late.start()
        wait_for_a_waiting_session(module_url)
    late.join()
    assert outcomes == [queue.version_of(changed)]
