"""Natural keys that several callers want at the same time: one caller gets each key, and there is no deadlock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import pytest
from psycopg2.errors import UniqueViolation

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import NaturalKeyHeld
from rowcall.queue.operations import Action
from rowcall.queue.operations.batch import LOCKED, change_batch
from rowcall.queue.views.inspect import lock_run
from rowcall.status import Status
from tests.support.locks import wait_for_a_waiting_session
from tests.support.rows import run_in

OPERATOR = Operator("test")


def dead(url: str, natural_key: str) -> int:
    """Insert a dead run, whose key another run may take."""
    with database.transaction(url) as connection:
        run_id: int = run_in(connection, Status.DEAD, **of_the_fact(natural_key))["id"]
    return run_id


def of_the_fact(natural_key: str) -> dict[str, str]:
    return {"natural_key": f"'{natural_key}'", "queue": f"'{natural_key}'", "unique_mode": "'until_failed'"}


def wanted(connection: PgConnection, natural_key: str) -> None:
    """Insert a new run with this key."""
    run_in(connection, Status.QUEUED, **of_the_fact(natural_key))


def retried(connection: PgConnection, run_id: int) -> bool:
    """Retry a run as an operation does, and return whether it was changed."""
    outcome = change_batch(connection, Action.RETRY, [run_id], queue.Filter(), OPERATOR)
    assert outcome.changed or outcome.refused == {run_id: LOCKED}
    return bool(outcome.changed)


def test_a_clone_waits_for_who_changes_the_original_before_it_takes_the_key(fresh_url: str) -> None:
    run_id = dead(fresh_url, "a")

    def cloning() -> None:
        with database.transaction(fresh_url) as connection:
            queue.clone(connection, run_id, OPERATOR)

    with ThreadPoolExecutor(1) as thread:
        with database.transaction(fresh_url) as connection:
            lock_run(connection, run_id, "clone")
            waiting = thread.submit(cloning)
            wait_for_a_waiting_session(fresh_url)
            queue.retry(connection, run_id, OPERATOR)
        with pytest.raises(NaturalKeyHeld):
            waiting.result()


def test_a_retry_takes_a_key_whose_holder_ends_before_it_is_looked_up(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = dead(fresh_url, "a")
    with database.transaction(fresh_url) as connection:
        holder = run_in(connection, Status.QUEUED, **of_the_fact("a"))["id"]
    module = import_module("rowcall.queue.operate")
    find = module.find_holders

    def find_too_late(*arguments: object) -> object:
        with database.transaction(fresh_url) as other:
            queue.cancel_any(other, holder, OPERATOR)
        monkeypatch.setattr(module, "find_holders", find)
        return find(*arguments)

    monkeypatch.setattr(module, "find_holders", find_too_late)
    with database.transaction(fresh_url) as connection:
        assert queue.retry(connection, run_id, OPERATOR)["held_key"] == "a"


def test_of_many_retried_the_one_is_left_whose_key_is_waited_for_in_a_circle(fresh_url: str) -> None:
    first, second = dead(fresh_url, "a"), dead(fresh_url, "b")
    with (
        database.transaction(fresh_url) as one,
        database.transaction(fresh_url) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        # This session gives way before PostgreSQL would look for a deadlock.
        database.fetch_all(other, "SET LOCAL deadlock_timeout = '1h'")
        assert retried(one, second)
        wanted(other, "a")
        waiting = thread.submit(wanted, other, "b")
        wait_for_a_waiting_session(fresh_url)
        assert not retried(one, first)
        one.commit()
        assert isinstance(waiting.exception(), UniqueViolation)
        other.rollback()
    with database.transaction(fresh_url) as connection:
        assert retried(connection, first)
