"""What was handed over: which messages wait, and which consumers perform runs, as far as the runs show it."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.queue import Lease, begin, heartbeat
from rowcall.queue.claims.handover import holder_of
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views.handed_over import HANDED_OVER, HOLDERS_MOST, HandedOver, list_handed_over
from rowcall.queue.views.stats import SCANNED_MOST
from rowcall.queue.views.workers import RUNS_MOST
from rowcall.status import Status
from tests.support.plans import looked_at, plan
from tests.support.rows import run_in

SEND, WEIGH = holder_of("parcels", "shop.send"), holder_of("scales", "shop.weigh")
CONSUMER = "consumer gpu-1.example:4711:0a1b2c"


def held(connection: PgConnection, holder: str, started: int = 60, **columns: str) -> int:
    """Insert a run that this holder got some seconds ago, and return its id."""
    started_at = f"now() - {started} * interval '1 second'"
    run_id: int = run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", started_at=started_at, **columns)["id"]
    return run_id


def renewed(connection: PgConnection, seconds: float, lease: float = 120.0, holder: str = CONSUMER) -> None:
    """Let this consumer have renewed its leases so many seconds ago."""
    at = "now() - %(seconds)s * interval '1 second'"
    fetch_all(
        connection,
        f"UPDATE rowcall.job_runs SET updated_at = {at}, locked_until = {at} + %(lease)s * interval '1 second'"
        " WHERE locked_by = %(holder)s",
        {"seconds": seconds, "lease": lease, "holder": holder},
    )


def seen(connection: PgConnection) -> HandedOver:
    return list_handed_over(connection, heartbeat=30)


def only(connection: PgConnection) -> Row:
    [consumer] = seen(connection).consumers
    return consumer


def test_without_a_run_that_was_handed_over_there_is_nothing(connection: PgConnection) -> None:
    held(connection, "worker-1:1:abc")
    run_in(connection, Status.QUEUED)
    run_in(connection, Status.SUCCEEDED)
    assert not seen(connection)
    assert seen(connection) == HandedOver([], [], False)


def test_messages_that_wait_are_counted_for_each_queue_and_task_the_longest_waiting_first(
    connection: PgConnection,
) -> None:
    held(connection, SEND, started=20)
    second = held(connection, WEIGH, started=30)
    first = held(connection, SEND, started=40, queue="'mail'")
    found = seen(connection)
    assert found
    assert found.consumers == []
    assert [(one["queue"], one["task"], one["waiting"], one["run_id"]) for one in found.waiting] == [
        ("parcels", "shop.send", 2, first),
        ("scales", "shop.weigh", 1, second),
    ]
    [row] = fetch_all(connection, "SELECT started_at FROM rowcall.job_runs WHERE id = %(id)s", {"id": first})
    assert found.waiting[0]["waiting_since"] == row["started_at"]


def test_a_consumer_has_its_runs_and_its_process(connection: PgConnection) -> None:
    progress = """'{"share": 0.5, "note": "half", "saved": {"secret": 1}}'"""
    run_id = held(connection, CONSUMER, queue="'mail'", progress=progress)
    consumer = only(connection)
    assert [consumer[name] for name in ("id", "hostname", "pid", "running")] == [CONSUMER, "gpu-1.example", 4711, 1]
    [run] = consumer["runs"]
    assert (run["run_id"], run["queue"], run["attempt"]) == (run_id, "mail", 2)
    assert run["progress"] == {"share": 0.5, "note": "half"}
    assert bool(seen(connection))
    assert seen(connection).waiting == []


def test_a_message_that_is_begun_becomes_the_run_of_a_consumer(connection: PgConnection) -> None:
    run_id = held(connection, SEND, lease_no="3")
    assert begin(connection, run_id, 3, CONSUMER, {"noop": 120.0}, False)
    assert (seen(connection).waiting, only(connection)["runs"][0]["run_id"]) == ([], run_id)


def test_of_very_many_runs_the_longest_running_are_shown_and_all_are_counted(connection: PgConnection) -> None:
    runs = [held(connection, CONSUMER, started=number) for number in range(RUNS_MOST + 5)]
    consumer = only(connection)
    assert consumer["running"] == RUNS_MOST + 5
    assert [run["run_id"] for run in consumer["runs"]] == runs[: -RUNS_MOST - 1 : -1]


@pytest.mark.parametrize(("lease", "interval"), [(120, 30), (3600, 30), (60, 20), (6, 2)])
def test_a_consumer_that_has_missed_two_heartbeats_is_not_alive(
    connection: PgConnection, lease: float, interval: float
) -> None:
    """By the measure of workers; with a short lease, heartbeats are more frequent than the settings say."""
    held(connection, CONSUMER)
    renewed(connection, 2.4 * interval, lease)
    assert only(connection)["alive"]
    renewed(connection, 2.6 * interval, lease)
    consumer = only(connection)
    assert not consumer["alive"]
    assert consumer["heartbeat_age_seconds"] == pytest.approx(2.6 * interval)


def test_a_consumer_whose_leases_have_expired_is_not_alive(connection: PgConnection) -> None:
    held(connection, CONSUMER, locked_until="now() - interval '1 second'")
    assert not only(connection)["alive"]


def test_the_heartbeat_of_a_consumer_shows_that_it_is_alive(connection: PgConnection) -> None:
    runs = [held(connection, CONSUMER) for _ in range(2)]
    renewed(connection, 100)
    assert not only(connection)["alive"]
    # The other row is locked, or its heartbeat has just begun.
    heartbeat(connection, {Lease(CONSUMER, runs[0], 3): 120.0})
    consumer = only(connection)
    assert (consumer["alive"], consumer["heartbeat_age_seconds"]) == (True, 0)
    [row] = fetch_all(connection, "SELECT max(locked_until) AS latest FROM rowcall.job_runs")
    assert consumer["locked_until"] == row["latest"]


def test_silent_consumers_come_first(connection: PgConnection) -> None:
    for name in ("consumer a:1:x", "consumer b:1:x", "consumer c:1:x"):
        held(connection, name)
    renewed(connection, 100, holder="consumer b:1:x")
    assert [one["hostname"] for one in seen(connection).consumers] == ["b", "a", "c"]


def test_of_very_many_consumers_some_are_listed_and_it_says_so(connection: PgConnection) -> None:
    held(connection, "consumer z:1:x")
    renewed(connection, 100, holder="consumer z:1:x")
    held(connection, SEND)
    for number in range(HOLDERS_MOST):
        held(connection, f"consumer a:{number}:x")
    found = seen(connection)
    assert (len(found.waiting), len(found.consumers), found.more) == (1, HOLDERS_MOST - 1, True)
    assert found.consumers[0]["hostname"] == "z"
    assert len(list_handed_over(connection, heartbeat=30, page_bytes=1000).consumers) < 5


MANY = 50_000

FILL = f"""
INSERT INTO rowcall.job_runs (job_type, status, finished_at, attempts, lease_no)
SELECT 'noop', 'succeeded', now(), 1, 1 FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_runs (job_type, status, locked_by, locked_until, started_at, attempts, lease_no, run_at)
SELECT 'noop', 'running', CASE WHEN number > 250 THEN '{SEND}' ELSE '{CONSUMER}' END, now() + interval '1 hour', now(),
    1, 1, now() - interval '1 hour' FROM generate_series(1, 500) AS number
"""


@pytest.mark.parametrize("statistics", ["SELECT 1", "ANALYZE rowcall.job_runs"])
def test_it_reads_the_head_of_each_lane_whatever_waits_and_whatever_has_finished(
    connection: PgConnection, statistics: str
) -> None:
    asked = {"heartbeat": 30, "page_bytes": 2**20}
    nodes = plan(connection, BY_INDEX + HANDED_OVER, asked, before=f"{FILL}; {statistics};")
    assert looked_at(nodes) <= SCANNED_MOST + 5


def test_where_more_runs_are_due_than_are_counted_there_may_be_more(connection: PgConnection) -> None:
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_runs (job_type, status, run_at, started_at, locked_by, locked_until, attempts)"
        " SELECT 'noop', 'running', now() - interval '1 minute', now(), %(holder)s, now() + interval '1 minute', 1"
        " FROM generate_series(1, %(many)s)",
        {"holder": SEND, "many": SCANNED_MOST - 1},
    )
    assert not seen(connection).more
    held(connection, WEIGH)
    found = seen(connection)
    assert (sum(one["waiting"] for one in found.waiting), found.more) == (SCANNED_MOST, True)
