"""Due runs that no worker serves are reported, by queue and type."""

from __future__ import annotations

import pytest

from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.queues import pause_queue
from rowcall.queue.workers import Registration, abandoned, register, stopped, unserved
from rowcall.status import Status
from tests.support.rows import run_in

SILENCE = 30.0
LONG_DUE = "now() - interval '1 minute'"


def reported(connection: PgConnection) -> list[tuple[str, str, int]]:
    return [(row["queue"], row["job_type"], row["waiting"]) for row in unserved(connection, SILENCE)]


def worker(connection: PgConnection, queues: list[str] | None = None, types: tuple[str, ...] = ("noop",)) -> None:
    register(connection, Registration("w", "here", 1, "1", queues, list(types), 1))


def test_without_any_worker_everything_long_due_is_reported(connection: PgConnection) -> None:
    for _ in range(2):
        run_in(connection, Status.QUEUED, run_at=LONG_DUE)
    run_in(connection, Status.FAILED, run_at=LONG_DUE, queue="'mail'")
    assert sorted(reported(connection)) == [("default", "noop", 2), ("mail", "noop", 1)]


@pytest.mark.parametrize(
    "columns",
    [{"run_at": "now()"}, {"run_at": "now() + interval '1 hour'"}],
    ids=["just due", "not due"],
)
def test_what_has_not_waited_long_is_not_reported(connection: PgConnection, columns: dict[str, str]) -> None:
    run_in(connection, Status.QUEUED, **columns)
    assert reported(connection) == []


@pytest.mark.parametrize(
    ("locked_until", "sweeps", "queues", "left"),
    [
        ("now() - interval '1 minute'", False, None, [("default", "noop", 1)]),
        ("now() - interval '1 minute'", True, ["mail"], [("default", "noop", 1)]),
        ("now() - interval '1 minute'", True, None, []),
        ("now() + interval '1 minute'", False, None, []),
    ],
    ids=["nobody", "another queue", "a worker of other types", "lease not over"],
)
def test_a_run_whose_lease_is_over_is_reported_unless_a_worker_takes_it_over(
    connection: PgConnection, locked_until: str, sweeps: bool, queues: list[str] | None, left: list[object]
) -> None:
    run_in(connection, Status.RUNNING, locked_until=locked_until, locked_by="'dead'")
    register(connection, Registration("dead", "here", 2, "1", None, ["noop"], 1))  # its heartbeat is still recent
    if sweeps:
        worker(connection, queues, ("other",))
    rows = abandoned(connection, SILENCE)
    assert [(row["queue"], row["job_type"], row["abandoned"]) for row in rows] == left


def test_what_runs_is_not_reported(connection: PgConnection) -> None:
    run_in(connection, Status.RUNNING, run_at=LONG_DUE)
    assert reported(connection) == []


@pytest.mark.parametrize(
    ("queues", "types", "left"),
    [
        (None, ("noop",), []),
        (["mail"], ("noop",), [("default", "noop", 1)]),
        (None, ("other",), [("default", "noop", 1), ("mail", "noop", 1)]),
    ],
)
def test_what_a_living_worker_takes_is_not_reported(
    connection: PgConnection, queues: list[str] | None, types: tuple[str, ...], left: list[tuple[str, str, int]]
) -> None:
    run_in(connection, Status.QUEUED, run_at=LONG_DUE)
    run_in(connection, Status.QUEUED, run_at=LONG_DUE, queue="'mail'")
    worker(connection, queues, types)
    assert sorted(reported(connection)) == left


def test_a_worker_that_cron_woke_lately_counts_and_one_not_heard_of_does_not(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, run_at=LONG_DUE)
    worker(connection)
    stopped(connection, "w")
    assert reported(connection) == []
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_at = now() - interval '31 seconds'")
    assert reported(connection) == [("default", "noop", 1)]


def test_a_paused_queue_waits_on_purpose(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, run_at=LONG_DUE)
    run_in(connection, Status.QUEUED, run_at=LONG_DUE, queue="'mail'")
    pause_queue(connection, "default", Operator("a test"))
    assert reported(connection) == [("mail", "noop", 1)]
