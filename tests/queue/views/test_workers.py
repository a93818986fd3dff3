"""Workers: which are listed, and what is shown of the runs that each performs."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.errors import FilterInvalid
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors
from rowcall.queue.views.pages import Order
from rowcall.queue.views.stats import SCANNED_MOST
from rowcall.queue.views.workers import RUNS_MOST, WORKERS, list_workers
from rowcall.queue.workers import Registration, register, stopped
from rowcall.status import Status
from tests.support.plans import looked_at, plan
from tests.support.rows import run_in

ALL = {"silence": 150, "heartbeat": 30, "limit": 50, "stopped": True, "at": "infinity", "id": "", "page_bytes": 2**20}


def worker(connection: PgConnection, name: str, **columns: str) -> str:
    """Register a worker; columns are given as SQL."""
    register(connection, Registration(name, "here", 1, "0.2.0", None, ["noop"], 4))
    for column, value in columns.items():
        fetch_all(connection, f"UPDATE rowcall.workers SET {column} = {value} WHERE id = %(id)s", {"id": name})
    return name


def names(connection: PgConnection, **options: Any) -> list[str]:
    return [row["id"] for row in list_workers(connection, **{"heartbeat": 30, **options}).workers]


def only(connection: PgConnection) -> Row:
    [row] = list_workers(connection, heartbeat=30).workers
    return row


def test_workers_with_a_recent_heartbeat_are_listed_the_newest_first(connection: PgConnection) -> None:
    worker(connection, "old", started_at="now() - interval '3 hours'")
    worker(connection, "new", started_at="now() - interval '1 hour'")
    worker(connection, "silent", started_at="now() - interval '2 hours'", heartbeat_at="now() - interval '1 hour'")
    stopped(connection, worker(connection, "stopped", started_at="now() - interval '4 hours'"))
    assert names(connection) == ["new", "old"]
    assert names(connection, heartbeat=2400) == ["new", "silent", "old"]


def test_a_worker_that_has_missed_two_heartbeats_is_listed_as_not_alive(connection: PgConnection) -> None:
    """By the measure of `explain`, and by the interval of the worker, not of the process that asks."""
    worker(connection, "late", heartbeat_seconds="20")
    heard = "UPDATE rowcall.workers SET heartbeat_at = now() - %(age)s * interval '1 second'"
    fetch_all(connection, heard, {"age": 49})
    assert only(connection)["alive"]
    fetch_all(connection, heard, {"age": 51})
    assert not only(connection)["alive"]


def test_those_of_the_last_day_are_listed_on_request(connection: PgConnection) -> None:
    worker(connection, "live")
    stopped(connection, worker(connection, "stopped", started_at="now() - interval '1 hour'"))
    silent = {"started_at": "now() - interval '23 hours'", "heartbeat_at": "now() - interval '22 hours'"}
    worker(connection, "silent", **silent)
    worker(connection, "gone", started_at="now() - interval '3 days'", heartbeat_at="now() - interval '25 hours'")
    rows = {row["id"]: row for row in list_workers(connection, heartbeat=30, stopped=True).workers}
    assert [*rows] == ["live", "stopped", "silent"]
    assert [row["alive"] for row in rows.values()] == [True, False, False]
    assert [row["stopped_at"] is not None for row in rows.values()] == [False, True, False]
    assert rows["silent"]["heartbeat_age_seconds"] == 22 * 3600


def test_a_worker_says_what_it_serves_and_whether_it_sleeps(connection: PgConnection) -> None:
    worker(connection, "w", queues="'{mail}'", sleeps_until="now() + interval '10 seconds'")
    run = run_in(connection, Status.RUNNING, locked_by="'other'", started_at="now()")
    assert (only(connection)["queues"], only(connection)["job_types"]) == (["mail"], ["noop"])
    assert only(connection)["sleeping"]
    # It sleeps with some threads free, and what it runs says more.
    fetch_all(connection, "UPDATE rowcall.job_runs SET locked_by = 'w' WHERE id = %(id)s", run)
    assert (only(connection)["sleeping"], only(connection)["running"]) == (False, 1)
    fetch_all(connection, "UPDATE rowcall.workers SET sleeps_until = now() - interval '10 seconds'")
    assert not only(connection)["sleeping"]


def test_each_run_of_a_worker_is_shown_with_its_progress_but_not_with_what_it_saved(connection: PgConnection) -> None:
    worker(connection, "w")
    progress = """'{"share": 0.5, "note": "half", "saved": {"secret": 1}}'"""
    run = run_in(connection, Status.RUNNING, locked_by="'w'", started_at="now()", progress=progress, queue="'mail'")
    run_in(connection, Status.RUNNING, locked_by="'other'")
    run_in(connection, Status.QUEUED)
    assert only(connection)["running"] == 1
    assert only(connection)["runs"] == [
        {
            "run_id": run["id"],
            "job_type": "noop",
            "queue": "mail",
            "attempt": 2,
            "started_at": run["started_at"],
            "progress": {"share": 0.5, "note": "half"},
        }
    ]


def test_of_very_many_runs_the_longest_running_are_shown_and_all_are_counted(connection: PgConnection) -> None:
    worker(connection, "w")
    for number in range(RUNS_MOST + 5):
        run_in(connection, Status.RUNNING, locked_by="'w'", started_at=f"now() - {number} * interval '1 second'")
    row = only(connection)
    assert (row["running"], len(row["runs"])) == (RUNS_MOST + 5, RUNS_MOST)
    assert row["runs"] == sorted(row["runs"], key=lambda run: run["started_at"])


@pytest.mark.parametrize(("limit", "page_bytes"), [(1, 2**20), (2, 2**20), (50, 1)])
def test_following_next_shows_each_worker_once_whether_a_page_ends_by_number_or_by_bytes(
    connection: PgConnection, limit: int, page_bytes: int
) -> None:
    for number in range(5):
        worker(connection, f"host {number}")
    worker(connection, "another", started_at="now() + interval '1 second'")
    seen, cursor = [], None
    while True:
        page = list_workers(connection, limit, cursor, heartbeat=30, page_bytes=page_bytes)
        seen += [row["id"] for row in page.workers]
        if (cursor := page.next) is None:
            break
    assert seen == ["another", "host 4", "host 3", "host 2", "host 1", "host 0"]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        cursors.written("workers False", 1, 1),
        cursors.written_text("workers True", "2026-01-01T00:00:00+00:00 w"),
        cursors.written_text("workers False", "soon w"),
        cursors.written_text("workers False", "2026-01-01T00:00:00+00:00 \0"),
    ],
)
def test_a_cursor_that_this_list_never_gave_out_is_refused(connection: PgConnection, cursor: str) -> None:
    with pytest.raises(FilterInvalid, match=r"^cursor: "):
        list_workers(connection, heartbeat=30, cursor=cursor)


MANY = 50_000

FILL = f"""
INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency)
SELECT 'w' || number, 'here', 1, '1', '{{noop}}', 4 FROM generate_series(1, 2000) AS number;
INSERT INTO rowcall.job_runs (job_type, status, finished_at, attempts, lease_no)
SELECT 'noop', 'succeeded', now(), 1, 1 FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_runs (job_type, status, locked_by, locked_until, attempts, lease_no, run_at)
SELECT 'noop', 'running', 'w1', now() + interval '1 hour', 1, 1, now() - interval '1 hour' FROM generate_series(1, 500)
"""


@pytest.mark.parametrize("statistics", ["SELECT 1", "ANALYZE rowcall.job_runs, rowcall.workers"])
@pytest.mark.parametrize("order", Order)
def test_a_page_reads_the_head_of_each_lane_whatever_waits_and_whatever_has_finished(
    connection: PgConnection, statistics: str, order: Order
) -> None:
    nodes = plan(connection, BY_INDEX + WORKERS[order], ALL, before=f"{FILL}; {statistics};")
    assert looked_at(nodes) <= SCANNED_MOST + 5
