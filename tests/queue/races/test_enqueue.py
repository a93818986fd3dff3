"""Callers that enqueue the same keys at the same time, each in a different order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType

import pytest
from marshmallow import Schema, fields

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.job_types import Catalogue, JobType
from rowcall.queue import Enqueued
from tests.support.locks import wait_for_a_waiting_session

KEYS = [f"key:{number}" for number in range(300)]


def test_two_callers_with_the_same_keys_in_another_order_wait_for_each_other_and_never_in_a_circle(
    fresh_url: str,
) -> None:
    def enqueue(turn: int) -> dict[str, Enqueued]:
        keys = KEYS[:: 1 if turn % 2 else -1]
        with database.transaction(fresh_url) as connection:
            return dict(zip(keys, queue.enqueue_many(connection, "noop", [{}] * len(keys), keys=keys), strict=True))

    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(enqueue, range(40)))
    for key in KEYS:
        assert len({answer[key].run_id for answer in answers}) == 1
        assert sum(not answer[key].replayed for answer in answers) == 1


def test_a_caller_locks_its_facts_in_their_order_too(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = JobType("fact", schema=Schema.from_dict({"key": fields.String()}), key=lambda payload: str(payload["key"]))
    module = ModuleType("job_types")
    vars(module)["FACT"] = fact
    monkeypatch.setattr(import_module("rowcall.queue.enqueue"), "catalogue", lambda: Catalogue(module))
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        queue.enqueue(one, "fact", {"key": "a"})
        with ThreadPoolExecutor(1) as caller:
            waiting = caller.submit(queue.enqueue_many, other, "fact", [{"key": "b"}, {"key": "a"}])
            wait_for_a_waiting_session(fresh_url)
            # The other one waits for `a` before it has taken `b`.
            [first] = queue.enqueue_many(one, "fact", [{"key": "b"}])
            one.commit()
            assert [outcome.replayed for outcome in waiting.result()] == [True, True]
    assert not first.replayed


def test_a_caller_locks_its_keys_in_their_order_and_not_in_the_order_of_its_payloads(fresh_url: str) -> None:
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        queue.enqueue(one, "noop", {}, key="a")
        with ThreadPoolExecutor(1) as caller:
            waiting = caller.submit(queue.enqueue_many, other, "noop", [{}, {}], keys=["b", "a"])
            wait_for_a_waiting_session(fresh_url)
            # The other one waits for `a` before it has taken `b`.
            [first] = queue.enqueue_many(one, "noop", [{}], keys=["b"])
            one.commit()
            assert [outcome.replayed for outcome in waiting.result()] == [True, True]
    assert not first.replayed


def test_the_first_asked_for_goes_first_whatever_its_key(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        outcomes = queue.enqueue_many(connection, "noop", [{"n": n} for n in range(4)], keys=["d", None, "b", "a"])
        ids = [outcome.run_id for outcome in outcomes]
        assert ids == sorted(ids)
        rows = fetch_all(connection, "SELECT payload FROM rowcall.job_runs ORDER BY id")
    assert [row["payload"] for row in rows] == [{"n": n} for n in range(4)]
