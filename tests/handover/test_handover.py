"""Runs that are handed over to a real Celery worker through a real RabbitMQ: each is performed once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.handover.parcels import QUEUE, WAITING, Parcels, celery_worker, in_a_group
from tests.support.broker import Broker
from tests.support.page import Reader, blocks
from tests.support.processes import children_of, rowcall, running, wait_until

CONSUMERS_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name ~ '^rowcall (consumer|handler)'"

pytestmark = pytest.mark.program("rabbitmq-server")


@pytest.fixture
def worker(parcels: Parcels) -> Iterator[subprocess.Popen[str]]:
    """Yield a worker that has one slot."""
    with running(parcels.environment, "worker", "run", "--concurrency", "1") as worker:
        yield worker


@pytest.mark.usefixtures("worker")
def test_a_run_waits_in_the_broker_without_a_slot_and_succeeds_in_celery(parcels: Parcels) -> None:
    first, second = parcels.send(order_id=1), parcels.send(order_id=2)
    parcels.wait_for_message(first)
    parcels.wait_for_message(second)
    [weighed] = parcels.ask_many("parcel_weigh", [{}])
    parcels.wait(weighed, "succeeded")  # by the worker, whose only slot is free
    told = rowcall(parcels.environment, "runs", "explain", str(first)).stdout
    assert "a message for the Celery task parcels.tasks.send in queue parcels waits for a consumer" in told
    messages = parcels.broker.take(QUEUE)
    assert [json.loads(message.body)[0] for message in messages] == [[first, 1], [second, 1]]
    parcels.broker.put(QUEUE, messages)
    with celery_worker(parcels):
        assert parcels.wait(first, "succeeded")["result"] == {"sent": 1}
        parcels.wait(second, "succeeded")
    assert sorted(parcels.labels()) == [str(first), str(second)]
    [kept] = parcels.sql("SELECT text FROM rowcall.run_logs WHERE run_id = %(id)s", id=first)
    assert kept["text"] == "sending order=1"


@pytest.mark.usefixtures("worker")
def test_a_limit_counts_the_runs_whose_messages_wait(parcels: Parcels) -> None:
    assert rowcall(parcels.environment, "queues", "limit", QUEUE, "1").returncode == 0
    first, second = parcels.send(order_id=1), parcels.send(order_id=2)
    parcels.wait_for_message(first)
    told = rowcall(parcels.environment, "runs", "explain", str(second)).stdout
    assert f"queue parcels allows 1 at a time; 1 is running: {first}" in told
    with celery_worker(parcels):
        parcels.wait(second, "succeeded")


@pytest.mark.usefixtures("worker")
def test_of_doubled_and_reordered_messages_each_run_is_performed_once(parcels: Parcels) -> None:
    runs = [parcels.send(order_id=number) for number in range(3)]
    for run_id in runs:
        parcels.wait_for_message(run_id)
    messages = parcels.broker.take(QUEUE)
    parcels.broker.put(QUEUE, [*reversed(messages), *messages])
    with celery_worker(parcels):
        wait_until(lambda: parcels.celery_log().count("message refused") == len(runs), "the doubles are refused")
        for run_id in runs:
            assert parcels.wait(run_id, "succeeded")["attempts"] == 1
    assert sorted(map(int, parcels.labels())) == runs
    assert "Traceback" not in parcels.celery_log()


@pytest.mark.usefixtures("worker")
def test_a_doubled_message_is_refused_while_the_run_is_performed(parcels: Parcels) -> None:
    run_id = parcels.send(order_id=1, at_a_door=True)
    parcels.wait_for_message(run_id)
    [message] = parcels.broker.take(QUEUE)
    parcels.broker.put(QUEUE, [message, message])
    with celery_worker(parcels, concurrency=2):
        parcels.wait_for_knock(run_id)
        told = rowcall(parcels.environment, "runs", "explain", str(run_id)).stdout
        assert "running on consumer " in told
        seen = json.loads(rowcall(parcels.environment, "workers", "--json").stdout)["handed_over"]
        assert [run["run_id"] for consumer in seen["consumers"] for run in consumer["runs"]] == [run_id]
        assert (seen["consumers"][0]["alive"], seen["waiting"]) == (True, [])
        wait_until(lambda: "has begun the run" in parcels.celery_log(), "the double is refused")
        parcels.open_door(run_id)
        parcels.wait(run_id, "succeeded")
    assert parcels.labels() == [str(run_id)]


@pytest.mark.usefixtures("worker")
def test_a_lost_message_is_sent_again_under_the_next_lease_and_costs_no_attempt(parcels: Parcels) -> None:
    [run_id] = parcels.ask_many("parcel_send", [parcels.payload(order_id=1)], queue=QUEUE, max_attempts=1)
    parcels.wait_for_message(run_id)
    [lost] = parcels.broker.take(QUEUE)
    parcels.expire_leases()
    wait_until(lambda: parcels.row(run_id)["lease_no"] == 2, "it is claimed again")
    parcels.wait_for_message(run_id)
    # The lost message arrives after all, hours late, and before the new one.
    parcels.broker.put(QUEUE, [lost, *parcels.broker.take(QUEUE)])
    with celery_worker(parcels):
        assert parcels.wait(run_id, "succeeded")["attempts"] == 1
    assert parcels.celery_log().count("message refused") == 1
    assert parcels.unsuccessful(run_id) == ["expire"]
    assert "retry" not in rowcall(parcels.environment, "runs", "show", str(run_id)).stdout  # no attempt is missing


@pytest.mark.usefixtures("worker")
def test_dead_letters_that_are_put_back_begin_nothing_if_their_lease_is_over(parcels: Parcels) -> None:
    broker = parcels.broker
    broker.delete(QUEUE)
    broker.declare("parcels_dead")
    dying = {"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parcels_dead"}
    broker.declare(QUEUE, **dying)
    run_id = parcels.send(order_id=1)
    parcels.wait_for_message(run_id)
    wait_until(lambda: broker.waiting("parcels_dead") == 1, "the message is dead")
    parcels.expire_leases()
    wait_until(lambda: broker.waiting("parcels_dead") == 2, "and so is the next one")
    parcels.wait_for_message(run_id)
    broker.delete(QUEUE)
    broker.declare(QUEUE)
    broker.put(QUEUE, broker.take("parcels_dead"))
    with celery_worker(parcels):
        assert parcels.wait(run_id, "succeeded")["lease_no"] == 2
    assert parcels.celery_log().count("the lease is over") == 1
    assert parcels.labels() == [str(run_id)]


@pytest.mark.usefixtures("worker")
def test_a_run_whose_consumer_is_killed_is_performed_by_the_next_one(parcels: Parcels) -> None:
    run_id = parcels.send(order_id=1, at_a_door=True)
    with celery_worker(parcels):
        parcels.wait_for_knock(run_id)
    with celery_worker(parcels):
        # The broker delivers the message again, but the dead consumer has begun its run.
        wait_until(lambda: "has begun the run" in parcels.celery_log(), "the message is refused")
        parcels.expire_leases()
        parcels.wait_for_knock(run_id, lease_no=2)
        parcels.open_door(run_id, lease_no=2)
        assert parcels.wait(run_id, "succeeded")["attempts"] == 2
    assert parcels.unsuccessful(run_id) == ["expire"]


@pytest.mark.usefixtures("worker")
def test_an_effect_of_a_killed_child_is_not_repeated(parcels: Parcels) -> None:
    run_id = parcels.send(order_id=1, ends="killed")
    with celery_worker(parcels):
        wait_until(lambda: "WorkerLostError" in parcels.celery_log(), "the child is killed")
        assert parcels.row(run_id)["status"] == "running"
        parcels.expire_leases()
        parcels.wait(run_id, "succeeded")
    assert parcels.labels() == [str(run_id)]


@pytest.mark.usefixtures("worker")
def test_failures_snoozes_and_time_limits_end_as_in_a_worker(parcels: Parcels) -> None:
    with celery_worker(parcels, concurrency=2):
        failed = parcels.send(order_id=1, ends="badly at first")
        put_off = parcels.send(order_id=2, ends="later")
        assert parcels.wait(failed, "succeeded")["attempts"] == 2
        assert parcels.unsuccessful(failed) == ["fail"]
        assert parcels.wait(put_off, "succeeded")["attempts"] == 1
        assert parcels.unsuccessful(put_off) == ["snooze"]
        [limited] = parcels.ask_many("parcel_limited", [parcels.payload(at_a_door=True)], queue=QUEUE)
        assert parcels.wait(limited, "failed")["error_type"] == "TimeLimitExceeded"
        parcels.open_door(limited)


@pytest.mark.usefixtures("worker")
def test_an_operator_cancels_a_run_before_and_after_a_consumer_begins_it(parcels: Parcels) -> None:
    waiting = parcels.send(order_id=1)
    parcels.wait_for_message(waiting)
    assert rowcall(parcels.environment, "runs", "cancel", str(waiting)).returncode == 0
    with celery_worker(parcels):
        parcels.wait(waiting, "cancelled")
        performed = parcels.send(order_id=2, ends="when cancelled")
        parcels.wait_until_begun(performed)
        assert rowcall(parcels.environment, "runs", "cancel", str(performed)).returncode == 0
        parcels.wait(performed, "cancelled")
    assert parcels.labels() == [str(performed)]


def test_once_hands_over_what_is_due_and_ends(parcels: Parcels) -> None:
    runs = [parcels.send(order_id=number) for number in range(2)]
    once = rowcall(parcels.environment, "worker", "once").stdout
    assert once.startswith("claimed 2, succeeded 0, failed 0, dead 0, handed over 2 in ")
    assert {parcels.row(run_id)["locked_by"] for run_id in runs} == {WAITING}
    assert parcels.sql("SELECT FROM rowcall.run_counts") == []  # consumers count how long runs waited and took
    assert parcels.broker.waiting(QUEUE) == 2


def test_a_consumer_whose_connections_are_cut_goes_on_and_releases_its_run_when_stopped_at_once(
    parcels: Parcels,
) -> None:
    with running(parcels.environment, "worker", "run"), celery_worker(parcels) as celery:
        parcels.wait(parcels.send(order_id=1), "succeeded")
        [child] = children_of(celery.pid)
        parcels.sql(f"SELECT pg_terminate_backend(pid) FROM ({CONSUMERS_BACKENDS}) AS found")
        parcels.wait(parcels.send(order_id=2), "succeeded")
        assert children_of(celery.pid) == [child]
        interrupted = parcels.send(order_id=3, at_a_door=True)
        parcels.wait_for_knock(interrupted)
        os.kill(celery.pid, signal.SIGQUIT)
        celery.wait()
        assert parcels.unsuccessful(interrupted) == ["release"]


def test_the_blocks_of_the_page_run_as_they_stand(broker: Broker, fresh_url: str, tmp_path: Path) -> None:
    declaration, tasks, handler = blocks("handover.md", "python")
    url, [_, start, *_] = "amqp://shop@rabbit.example//", blocks("handover.md", "sh")
    assert url in tasks
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "job_types.py").write_text(declaration)
    (tmp_path / "shop" / "tasks.py").write_text(tasks.replace(url, broker.url))
    (tmp_path / "shop" / "handlers.py").write_text(f"from shop.job_types import SEND\n{handler}")
    reader = Reader(tmp_path, fresh_url, ROWCALL_APP="shop", ROWCALL_BROKER_URL=broker.url)
    broker.declare("celery_mail")
    reader.type("rowcall enqueue shop_send '{\"order_id\": 7}'; rowcall worker once")
    [message] = broker.take("celery_mail")
    broker.put("celery_mail", [message, message])
    with in_a_group(["/bin/sh", "-c", start], reader.environment, tmp_path):
        reader.type("rowcall runs show 1 --wait")
        log = tmp_path / "celery.log"
        wait_until(lambda: "message refused" in log.read_text(), "the double is refused")
    told = [json.loads(line) for line in log.read_text().splitlines() if "message refused" in line]
    assert [line["run_id"] for line in told] == [1]
    broker.delete("celery_mail")
