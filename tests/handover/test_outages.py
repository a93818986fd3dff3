"""A broker that is killed, silent or without the queue, and workers that are killed while they hand runs over."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from tests.handover.parcels import QUEUE, Parcels, celery_worker
from tests.support.processes import rowcall, running, wait_until
from tests.support.shop import kill
from tests.support.silence import Network, network

pytestmark = pytest.mark.program("rabbitmq-server")


@pytest.fixture
def between(parcels: Parcels) -> Iterator[Network]:
    """Yield the network through which workers reach the broker."""
    with network(parcels.broker.url) as between:
        yield between


def put_off(parcels: Parcels, run_id: int) -> bool:
    """Whether a worker has given the run back."""
    return parcels.unsuccessful(run_id) == ["snooze"] and parcels.row(run_id)["status"] == "queued"


def test_without_a_broker_runs_wait_and_others_are_performed_and_its_messages_survive(parcels: Parcels) -> None:
    with running(parcels.environment, "worker", "run", "--concurrency", "1"):
        first = parcels.send(order_id=1)
        parcels.wait_for_message(first)
        parcels.broker.kill()
        second = parcels.send(order_id=2)
        wait_until(lambda: put_off(parcels, second), "the second run is put off")
        [weighed] = parcels.ask_many("parcel_weigh", [{}])
        parcels.wait(weighed, "succeeded")
        third = parcels.send(order_id=3)
        for run_id in (second, third):
            told = rowcall(parcels.environment, "runs", "explain", str(run_id)).stdout
            assert "has not taken a message for queue parcels" in told
            assert "guest:guest" not in told
        assert (parcels.row(second)["attempts"], parcels.row(third)["lease_no"]) == (0, 0)
        parcels.broker.start()
        with celery_worker(parcels):
            for run_id in (first, second, third):
                assert parcels.wait(run_id, "succeeded")["attempts"] == 1
    assert sorted(parcels.labels()) == [str(first), str(second), str(third)]


def test_a_broker_that_says_nothing_for_longer_than_the_time_limit_costs_no_attempt(
    parcels: Parcels, between: Network
) -> None:
    between.flows.clear()
    with running({**parcels.environment, "ROWCALL_BROKER_URL": between.url}, "worker", "run"):
        [run_id] = parcels.ask_many("parcel_limited", [parcels.payload()], queue=QUEUE)
        wait_until(lambda: put_off(parcels, run_id), "the run is put off")
        between.flows.set()
        parcels.wait_for_message(run_id)
    assert parcels.row(run_id)["attempts"] == 1


def test_a_broker_that_falls_silent_before_it_confirms_costs_no_attempt_and_doubles_nothing(
    parcels: Parcels, between: Network
) -> None:
    with running({**parcels.environment, "ROWCALL_BROKER_URL": between.url}, "worker", "run", "--concurrency", "1"):
        parcels.wait_for_message(parcels.send(order_id=1))
        between.fall_silent()  # the connection that the worker keeps
        run_id = parcels.send(order_id=2)
        wait_until(lambda: put_off(parcels, run_id), "the run is put off")
        parcels.wait_for_message(run_id)  # on a new connection
        with celery_worker(parcels):
            assert parcels.wait(run_id, "succeeded")["attempts"] == 1
    assert parcels.labels().count(str(run_id)) == 1


def examined(parcels: Parcels) -> str:
    """Return what doctor says of the hand-over."""
    found = json.loads(rowcall(parcels.environment, "doctor", "--json").stdout)["findings"]
    [message] = [
        f"{'ok' if one['good'] else 'FIX'}: {one['message']}" for one in found if one["subject"] == "hand-over"
    ]
    return message


def test_a_queue_that_does_not_exist_takes_no_message_and_the_run_and_doctor_say_so(parcels: Parcels) -> None:
    masked = parcels.broker.url.replace(":guest@", ":**@")
    with celery_worker(parcels):
        served = f"ok: the broker {masked} answers; queues, all with consumers: {QUEUE}"
        wait_until(lambda: examined(parcels) == served, "the queue has a consumer")
    unserved = f"FIX: the broker {masked} has no consumer for queue {QUEUE}: start a Celery worker"
    wait_until(lambda: examined(parcels).startswith(unserved), "the queue has no consumer any more")
    parcels.broker.delete(QUEUE)
    assert examined(parcels).startswith(f"FIX: the broker {masked} has no queue {QUEUE}: start a Celery worker")
    run_id = parcels.send(order_id=1)
    rowcall(parcels.environment, "worker", "once")
    assert put_off(parcels, run_id)
    told = rowcall(parcels.environment, "runs", "explain", str(run_id)).stdout
    assert "it has no such queue: start a Celery worker that serves it, or correct the queue in celery(...)" in told


@pytest.mark.parametrize("sent", [False, True], ids=["before it has sent the message", "before it has written that"])
def test_a_worker_is_killed_while_it_hands_a_run_over(parcels: Parcels, between: Network, sent: bool) -> None:
    between.flows.clear()
    environment = {**parcels.environment, "ROWCALL_BROKER_URL": between.url}
    with running(environment, "worker", "run") as worker, database.transaction(parcels.url) as locking:
        run_id = parcels.send(order_id=1)
        wait_until(lambda: parcels.row(run_id)["status"] == "running", "the run is claimed")
        if sent:
            # The worker cannot write that it has sent the message.
            fetch_all(locking, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", {"id": run_id})
            between.flows.set()
            wait_until(lambda: parcels.broker.waiting(QUEUE) == 1, "the message is sent")
        kill(worker)
    between.flows.set()
    with running(parcels.environment, "worker", "run"), celery_worker(parcels):
        if not sent:
            parcels.expire_leases()
        assert parcels.wait(run_id, "succeeded")["attempts"] == (1 if sent else 2)
    assert parcels.labels() == [str(run_id)]


def test_a_worker_without_the_brokers_url_does_not_start_and_says_what_to_set(parcels: Parcels) -> None:
    environment = {name: value for name, value in parcels.environment.items() if name != "ROWCALL_BROKER_URL"}
    refused = rowcall(environment, "worker", "once")
    assert refused.returncode == 2
    assert "job type 'parcel_" in refused.stderr
    assert "set ROWCALL_BROKER_URL" in refused.stderr
    wrong = rowcall({**environment, "ROWCALL_BROKER_URL": "carrier-pigeon://loft"}, "worker", "once")
    assert wrong.returncode == 2
    assert "ROWCALL_BROKER_URL cannot be used" in wrong.stderr
    assert rowcall(environment, "worker", "once", "--types", "parcel_weigh").returncode == 0
