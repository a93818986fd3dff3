"""Two equal requests at the same moment: one finds the run that holds their natural key, and then that run ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import import_module

import pytest
from psycopg2.errors import SerializationFailure

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import KeyConflict
from rowcall.queue import Enqueued, enqueue_many
from rowcall.status import Status
from tests.support.invoices import TYPES, charge, declare, end
from tests.support.locks import wait_for_a_waiting_session

KEYS = [f"key:{number}" for number in range(100)]


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, *TYPES)


def asked(connection: PgConnection, many: bool) -> Enqueued:
    if many:
        return enqueue_many(connection, "live", [{"invoice_id": 7}, {"invoice_id": 8}], keys=["t", None])[0]
    return charge(connection, job_type="live", key="t")


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_a_request_waits_for_an_equal_one_that_got_a_run_which_has_ended_since(
    fresh_url: str, commits: bool, many: bool
) -> None:
    with database.transaction(fresh_url) as connection:
        holder = charge(connection, job_type="live", key="s")
    with database.transaction(fresh_url) as one, ThreadPoolExecutor(1) as thread:
        assert asked(one, many) == Enqueued(holder.run_id, replayed=True)
        with database.transaction(fresh_url) as other:
            end(other, holder.run_id, Status.SUCCEEDED)

        def again() -> Enqueued:
            with database.transaction(fresh_url) as other:
                return asked(other, many)

        waiting = thread.submit(again)
        wait_for_a_waiting_session(fresh_url)
        if commits:
            one.commit()
        else:
            one.rollback()
        assert (waiting.result() == Enqueued(holder.run_id, replayed=True)) == commits
        assert waiting.result().replayed == commits


@pytest.mark.parametrize("ends", [Status.SUCCEEDED, None])
@pytest.mark.parametrize("job_type", ["charge", "live"])
def test_a_request_whose_key_is_taken_before_it_is_remembered_gets_the_run_that_has_it(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, job_type: str, ends: Status | None
) -> None:
    with database.transaction(fresh_url) as connection:
        holder = charge(connection, job_type=job_type, key="s")
    module = import_module("rowcall.queue.enqueue")
    remember = module.remember

    def remember_too_late(*arguments: object) -> None:
        monkeypatch.setattr(module, "remember", remember)
        with database.transaction(fresh_url) as other:
            if job_type == "charge":
                charge(other, key="t")
            elif ends:
                end(other, holder.run_id, ends)
        remember(*arguments)

    monkeypatch.setattr(module, "remember", remember_too_late)
    with database.transaction(fresh_url) as connection:
        assert charge(connection, job_type=job_type, key="t") == Enqueued(holder.run_id, replayed=True)
    with database.transaction(fresh_url) as connection:
        assert charge(connection, job_type=job_type, key="t") == Enqueued(holder.run_id, replayed=True)


def test_two_equal_requests_get_one_run_if_one_of_them_commits_each_statement(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.transaction(fresh_url) as connection:
        holder = charge(connection, job_type="live")
    module = import_module("rowcall.queue.enqueue")
    remember = module.remember
    equal: list[Enqueued] = []

    def remember_too_late(*arguments: object) -> None:
        monkeypatch.setattr(module, "remember", remember)
        with database.transaction(fresh_url) as other:
            end(other, holder.run_id, Status.SUCCEEDED)
            equal.append(charge(other, job_type="live", key="t"))
        remember(*arguments)

    monkeypatch.setattr(module, "remember", remember_too_late)
    with closing(database.connect(fresh_url)) as connection:
        connection.autocommit = True
        assert charge(connection, job_type="live", key="t") == Enqueued(equal[0].run_id, replayed=True)
        assert not equal[0].replayed


def test_a_request_whose_fact_is_released_before_its_holder_is_looked_up_is_enqueued(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.transaction(fresh_url) as connection:
        holder = charge(connection, job_type="live", key="s")
    module = import_module("rowcall.queue.enqueue")
    find = module.find_holders

    def find_too_late(*arguments: object) -> object:
        monkeypatch.setattr(module, "find_holders", find)
        with database.transaction(fresh_url) as other:
            end(other, holder.run_id, Status.SUCCEEDED)
        return find(*arguments)

    monkeypatch.setattr(module, "find_holders", find_too_late)
    with database.transaction(fresh_url) as connection:
        new = charge(connection, job_type="live", key="t")
        assert not new.replayed
        assert charge(connection, job_type="live", key="t") == Enqueued(new.run_id, replayed=True)


def test_a_key_that_two_requests_with_different_content_want_at_once_belongs_to_one(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        holder = charge(connection, job_type="live")
    with database.transaction(fresh_url) as one, ThreadPoolExecutor(1) as thread:
        assert charge(one, job_type="live", key="t").run_id == holder.run_id

        def other_content() -> Enqueued:
            with database.transaction(fresh_url) as other:
                return charge(other, 8, "live", key="t")

        waiting = thread.submit(other_content)
        wait_for_a_waiting_session(fresh_url)
        one.commit()
        assert isinstance(waiting.exception(), KeyConflict)


@pytest.mark.parametrize("job_type", ["charge", "live"])
def test_callers_with_the_same_keys_for_facts_that_runs_hold_never_wait_in_a_circle(
    fresh_url: str, job_type: str
) -> None:
    payloads = {key: {"invoice_id": number} for number, key in enumerate(KEYS)}
    with database.transaction(fresh_url) as connection:
        # Half of the facts have a run without a key; the others have none.
        enqueue_many(connection, job_type, list(payloads.values())[::2])

    def ask(turn: int) -> dict[str, int]:
        keys = KEYS[:: 1 if turn % 2 else -1]
        with database.transaction(fresh_url) as connection:
            outcomes = enqueue_many(connection, job_type, [payloads[key] for key in keys], keys=keys)
            return {key: outcome.run_id for key, outcome in zip(keys, outcomes, strict=True)}

    with ThreadPoolExecutor(4) as callers:
        first, *others = callers.map(ask, range(20))
    assert all(other == first for other in others)
    with database.transaction(fresh_url) as connection:
        assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == len(KEYS)
        assert queue.get_run(connection, first[KEYS[1]])["idempotency_key"] == KEYS[1]


@pytest.mark.parametrize("holders", [True, False])
@pytest.mark.parametrize("job_type", ["charge", "live"])
def test_two_batches_take_their_keys_in_one_order(fresh_url: str, job_type: str, holders: bool) -> None:
    """Both wait for the last key.  In the order of their payloads, each would have a key that the other one needs."""
    payloads = {key: {"invoice_id": number} for number, key in enumerate("abz")}
    if holders:
        with database.transaction(fresh_url) as connection:
            enqueue_many(connection, job_type, list(payloads.values()))

    def ask(keys: str) -> set[int]:
        with database.transaction(fresh_url) as connection:
            outcomes = enqueue_many(connection, job_type, [payloads[key] for key in keys], keys=list(keys))
            return {outcome.run_id for outcome in outcomes}

    with ThreadPoolExecutor(2) as callers:
        with database.transaction(fresh_url) as first:
            charge(first, 2, job_type, key="z")
            one, other = callers.submit(ask, "azb"), callers.submit(ask, "bza")
            wait_for_a_waiting_session(fresh_url, sessions=2)
            first.rollback()
        assert one.result() == other.result()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("job_type", ["charge", "live"])
def test_a_caller_whose_snapshot_lacks_an_equal_request_must_repeat_its_transaction(
    fresh_url: str, job_type: str, level: str
) -> None:
    with database.transaction(fresh_url) as connection:
        holder = charge(connection, job_type=job_type)
    with database.transaction(fresh_url) as late:
        fetch_all(late, f"SET TRANSACTION ISOLATION LEVEL {level}; SELECT 1")
        with database.transaction(fresh_url) as other:
            assert charge(other, job_type=job_type, key="t").run_id == holder.run_id
        with pytest.raises(SerializationFailure):
            charge(late, job_type=job_type, key="t")
        late.rollback()
        fetch_all(late, f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert charge(late, job_type=job_type, key="t") == Enqueued(holder.run_id, replayed=True)
