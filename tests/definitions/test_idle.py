"""Idle: a visit that finds nothing due is recorded in one statement; anything due is left to the usual way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.definitions import visit_idle
from rowcall.queue.failures.count import count_failures
from rowcall.queue.workers import Registration
from rowcall.schema import REVISION
from rowcall.status import Status
from tests.support.failures import failed
from tests.support.rows import run_in

VISITOR = Registration("visitor", "host-1", 7, "1.0", ["mail"], ["noop"], 10, 20.0)

QUIET = """
UPDATE rowcall.schedule_ticks SET worker = 'w', ticked_at = now() - interval '1 minute';
INSERT INTO rowcall.job_definitions (name, job_type, schedule, next_run_at)
VALUES ('d', 'noop', '@daily', now() + interval '1 second');
INSERT INTO rowcall.queues (name) VALUES ('narrow');
INSERT INTO rowcall.worker_versions (version) VALUES ('1.0')
"""

WORKERS = "SELECT *, stopped_at = now() AND heartbeat_at = now() AS stopped_now FROM rowcall.workers"
TICK = "SELECT worker, extract(epoch FROM now() - ticked_at)::integer AS ago FROM rowcall.schedule_ticks"

ITS = "UPDATE rowcall.job_definitions SET"


@pytest.fixture
def quiet(connection: PgConnection) -> PgConnection:
    """Return a connection to a database in which nothing is due."""
    fetch_all(connection, QUIET)
    return connection


def visits(connection: PgConnection) -> bool:
    return visit_idle(connection, VISITOR, ["narrow"])


def sql(statement: str) -> Callable[[PgConnection], Any]:
    return lambda connection: fetch_all(connection, statement)


def run(status: Status, **columns: str) -> Callable[[PgConnection], Any]:
    return lambda connection: run_in(connection, status, **columns)


def attempt(age: str) -> Callable[[PgConnection], Any]:
    return lambda connection: failed(connection, age=age, status=Status.DEAD)


def test_the_visit_is_recorded_as_that_of_a_worker_that_has_stopped(quiet: PgConnection) -> None:
    assert visits(quiet)
    [row] = fetch_all(quiet, WORKERS)
    assert row["stopped_now"]
    assert {name: row[name] for name in vars(VISITOR) if name != "stopped"} == {
        name: value for name, value in vars(VISITOR).items() if name != "stopped"
    }
    assert fetch_all(quiet, TICK) == [{"worker": "visitor", "ago": 0}]


def test_a_recent_tick_is_not_recorded_again(quiet: PgConnection) -> None:
    fetch_all(quiet, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '5 seconds'")
    assert visits(quiet)
    assert fetch_all(quiet, TICK) == [{"worker": "w", "ago": 5}]


def test_the_visits_of_earlier_days_are_forgotten(quiet: PgConnection) -> None:
    assert visits(quiet)
    fetch_all(quiet, "UPDATE rowcall.workers SET id = 'yesterday', heartbeat_at = now() - interval '25 hours'")
    assert visits(quiet)
    assert [row["id"] for row in fetch_all(quiet, WORKERS)] == ["visitor"]


DUE = {
    "a run is due": run(Status.QUEUED),
    "a run of a type and queue that this worker does not serve is due": run(
        Status.QUEUED, job_type="'other'", queue="'other'"
    ),
    "a retry is due": run(Status.FAILED),
    "a run is running, so that its lease may have expired": run(Status.RUNNING),
    "a run in a later lane is due": lambda connection: [
        run_in(connection, Status.QUEUED, priority="1", run_at="now() + interval '1 hour'"),
        run_in(connection, Status.QUEUED, priority="2"),
    ],
    "a schedule is due": sql(f"{ITS} next_run_at = now()"),
    "a definition reports to a ping URL": sql(f"{ITS} ping_url = 'https://hc-ping.com/1', paused_at = now()"),
    "a failed attempt is to be counted": attempt("21 seconds"),
    "no worker has ever ticked": sql("UPDATE rowcall.schedule_ticks SET worker = NULL"),
    "no worker has ticked for a while": sql("UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '151 s'"),
    "the last tick is in the future": sql("UPDATE rowcall.schedule_ticks SET ticked_at = now() + interval '1 h'"),
    "no worker of this version has been here": sql("UPDATE rowcall.worker_versions SET version = '0.9'"),
    "a queue with a declared limit has no row": sql("UPDATE rowcall.queues SET name = 'wide'"),
    "the schema is older": sql("UPDATE rowcall.schema_version SET version_num = '0001', fits = '0001'"),
    "the schema is too new": sql("UPDATE rowcall.schema_version SET version_num = '9999', fits = '9999'"),
}


@pytest.mark.parametrize("happens", DUE.values(), ids=DUE)
def test_nothing_is_recorded_if(quiet: PgConnection, happens: Callable[[PgConnection], Any]) -> None:
    happens(quiet)
    before: list[Row] = fetch_all(quiet, TICK)
    assert not visits(quiet)
    assert fetch_all(quiet, WORKERS) == []
    assert fetch_all(quiet, TICK) == before


NOT_DUE = {
    "a run is due later": run(Status.QUEUED, run_at="now() + interval '1 second'"),
    "a run has ended": run(Status.SUCCEEDED),
    "a removed definition had a ping URL": sql(
        f"{ITS} ping_url = 'https://hc-ping.com/1', removed_at = now(), next_run_at = NULL"
    ),
    "an attempt has failed just now": attempt("19 seconds"),
    "another worker has just ticked": sql("UPDATE rowcall.schedule_ticks SET ticked_at = clock_timestamp()"),
    "the schema is newer and fits": sql(f"UPDATE rowcall.schema_version SET version_num = '9999', fits = '{REVISION}'"),
}


@pytest.mark.parametrize("happens", NOT_DUE.values(), ids=NOT_DUE)
def test_nothing_is_due_if(quiet: PgConnection, happens: Callable[[PgConnection], Any]) -> None:
    happens(quiet)
    assert visits(quiet)


def test_a_failed_attempt_that_has_been_counted_is_not_due(quiet: PgConnection) -> None:
    failed(quiet, age="21 seconds", status=Status.DEAD)
    assert not visits(quiet)
    assert count_failures(quiet) == 1
    assert visits(quiet)
