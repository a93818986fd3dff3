"""When `once` has nothing left to do, and that a stopping worker claims nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import fetch_all
from rowcall.job_types import catalogue
from rowcall.job_types.handover import Handover
from rowcall.queue import ClaimRequest
from rowcall.queue.workers import Registration, register
from rowcall.status import Status
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime import producer as producer_module
from rowcall_worker.runtime.claims.lanes import Lanes
from rowcall_worker.runtime.claims.pace import Room
from rowcall_worker.runtime.claims.sleep import PLACE_SECONDS, Sleep, State
from rowcall_worker.runtime.claims.stranded import Steps, Stranded
from rowcall_worker.runtime.claims.suspects import Suspects
from rowcall_worker.runtime.completer import Completer
from rowcall_worker.runtime.connection import Link, Outage
from rowcall_worker.runtime.handover import publisher as publisher_module
from rowcall_worker.runtime.handover.publisher import Publisher
from rowcall_worker.runtime.in_flight import InFlight
from rowcall_worker.runtime.producer import Producer
from tests.support.processes import wait_until
from tests.support.rows import run_in


@pytest.fixture
def once(fresh_url: str) -> Producer:
    in_flight = InFlight(threads=2)
    link = Link(fresh_url, "test", Outage())
    request = ClaimRequest({"noop": 60}, 0)
    known = (Lanes(), 60, True, True, Stranded(in_flight, Steps()), Suspects(in_flight, 1.0))
    return Producer(in_flight, Completer(in_flight, catalogue()), link, "worker-1", request, *known)


def is_quiet(once: Producer) -> bool:
    for _ in range(3):
        once._try([])
    return once.in_flight.quiet.is_set()


def test_what_is_locked_for_a_moment_is_waited_for(
    once: Producer, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.QUEUED)
    with database.transaction(fresh_url) as other:
        fetch_all(other, "SELECT id FROM rowcall.job_runs FOR UPDATE")
        assert not is_quiet(once)
        monkeypatch.setattr(producer_module, "LOCKED_SECONDS", 0.0)
        assert is_quiet(once)
    once._try([])
    assert len(once.in_flight.runs) == 1


def test_where_nothing_is_due_nothing_is_waited_for(once: Producer) -> None:
    assert is_quiet(once)


def test_an_exchange_that_was_under_way_when_the_worker_was_told_to_end_claims_nothing(
    once: Producer, fresh_url: str
) -> None:
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.QUEUED)
    once._try([])
    [run] = once.in_flight.runs.values()
    with database.transaction(fresh_url) as connection:
        queue.release(connection, run.lease, "stopped")
    reserved = once.in_flight.reserve()
    assert once.in_flight.reserved >= reserved.slots == 1
    once.in_flight.close()
    result, _, _ = once._exchange([], reserved)
    assert result.claimed == []


def test_what_waits_for_a_place_under_a_limit_lets_no_worker_sleep(once: Producer, fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        queue.limit_queue(connection, "narrow", 1, Operator("test"))
        holder = run_in(connection, Status.QUEUED, queue="'narrow'")["id"]
        queue.enqueue(connection, "noop", {}, queue="narrow")
    other = replace(once, in_flight=InFlight(threads=1), worker="worker-2")
    other._try([])
    assert [run.claimed.run_id for run in other.in_flight.runs.values()] == [holder]
    sleep = Sleep("worker-1", 60, lambda: True)
    staying = replace(once, once=False, sleep=sleep)
    for _ in range(20):
        staying._try([])
    assert (sleep.state, sleep.pause) == (State.AWAKE, PLACE_SECONDS)


def asleep(once: Producer) -> tuple[Producer, Sleep]:
    """Return a producer of a worker that stays, which has performed a run and fallen asleep."""
    sleep = Sleep("worker-1", 60, lambda: True)
    staying = replace(once, once=False, sleep=sleep)
    staying._try([])
    finish(staying)

    def falls_asleep() -> bool:
        staying._try([])
        return sleep.state is State.ASLEEP

    # It waits for the transactions of the whole server, also for those of other tests.
    wait_until(falls_asleep, "the worker is asleep")
    return staying, sleep


def test_who_is_notified_of_a_run_that_is_locked_wakes_up(once: Producer, fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        register(connection, Registration("worker-1", "host", 1, "0", None, ["noop"], 1))
        run_in(connection, Status.QUEUED)
    staying, sleep = asleep(once)
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.QUEUED)
    with database.transaction(fresh_url) as other:
        fetch_all(other, "SELECT id FROM rowcall.job_runs FOR UPDATE")
        staying.in_flight.wake_ups.hear()
        for _ in range(3):
            staying._try([])
        assert sleep.state is State.AWAKE


def test_a_connection_that_the_second_producer_loses_lets_nobody_claim_beside_a_suspect(once: Producer) -> None:
    unreachable = Link("postgresql://me@127.0.0.1:1/none", "test", Outage())
    second = replace(once, leads=False, link=unreachable)
    once.in_flight.wait_until_empty()
    second._try([])
    assert once.in_flight.reserve() == Room(0, 0)


def ids_in_flight(producer: Producer) -> list[int]:
    return [run.claimed.run_id for run in producer.in_flight.runs.values()]


def finish(producer: Producer) -> None:
    """Let what is in flight succeed, and write it."""
    for run in list(producer.in_flight.runs.values()):
        producer.in_flight.settle(run, AttemptResult("null"))
    producer._try(producer.in_flight.collect())


def test_work_that_the_second_producer_claims_keeps_a_suspect_from_being_next_at_once(
    once: Producer, fresh_url: str
) -> None:
    leader = replace(once, once=False)
    with database.transaction(fresh_url) as connection:
        suspects = [run_in(connection, Status.QUEUED, suspect="2")["id"] for _ in range(2)]
    leader._try([])
    assert ids_in_flight(leader) == suspects[:1]
    # The rest after it lasts twenty times as long.
    leader.suspects._still_since = elapsed() - 60
    finish(leader)
    with database.transaction(fresh_url) as connection:
        other = run_in(connection, Status.QUEUED)["id"]
    second = replace(leader, leads=False)
    second._try([])
    assert ids_in_flight(second) == [other]
    finish(second)
    leader.suspects.hurry()
    leader._try([])
    assert ids_in_flight(leader) == []


@pytest.mark.parametrize(
    ("holder", "said"),
    [("celery mail shop.tasks.send", "message lost"), ("worker-2", "lease expired")],
    ids=["no consumer began it", "its worker is dead"],
)
def test_the_log_says_whether_a_message_was_lost_or_a_worker_died(
    once: Producer, fresh_url: str, capsys: pytest.CaptureFixture[str], holder: str, said: str
) -> None:
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", locked_until="now() - interval '1 second'")
    once._try([])
    assert [line["event"] for line in map(json.loads, capsys.readouterr().err.splitlines())] == [said]


@pytest.mark.parametrize("leads", [True, False], ids=["the leading producer", "the other one"])
def test_after_the_pause_of_a_broker_a_producer_pauses_again(
    once: Producer, monkeypatch: pytest.MonkeyPatch, leads: bool
) -> None:
    monkeypatch.setattr(publisher_module, "FIRST_PAUSE_SECONDS", 0.01)
    leases = {"noop": 60.0, "send": 60.0}
    publisher = Publisher("memory://here//", {"send": Handover("shop.send", "mail", 900.0)}, leases)
    producer = replace(once, once=False, leads=leads, publisher=publisher)
    publisher._pauses["mail"].begin("a test")
    producer._try([])
    wait_until(lambda: publisher.opens_in == inf, "the pause is over")
    for _ in range(3):
        producer._try([])
    assert producer.request.leases == leases
    assert producer._pause() > 0
