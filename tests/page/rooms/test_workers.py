"""Workers on the page: what each does now and serves, why one is silent, and which due runs nobody serves."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.claims.handover import holder_of
from rowcall.status import Status
from tests.page.conftest import Browse
from tests.support.rows import run_in

MESSAGE = holder_of("parcels", "shop.send")

WORKER = """
INSERT INTO rowcall.workers
    (id, hostname, pid, version, queues, job_types, concurrency, started_at, heartbeat_at, heartbeat_seconds,
    stopped_at)
VALUES (%(id)s, %(id)s, 7, '1.2', %(queues)s::text[], '{noop,send_mail}', 4, now() - interval '1 hour',
    now() - %(silent)s::interval, 30, now() - %(stopped)s::interval)
"""


@pytest.fixture(autouse=True)
def no_workers(committed: PgConnection) -> None:
    """Begin each test without workers and runs."""
    fetch_all(committed, "TRUNCATE rowcall.workers; TRUNCATE rowcall.job_runs CASCADE")


def worker(
    connection: PgConnection,
    name: str = "web-1",
    silent: str = "1 second",
    stopped: str | None = None,
    queues: str | None = None,
) -> None:
    fetch_all(connection, WORKER, {"id": name, "silent": silent, "stopped": stopped, "queues": queues})


def test_without_workers_the_screen_says_how_to_start_one(browse: Browse) -> None:
    assert "No worker is alive. Start one with rowcall worker run" in browse("read").get("/workers").text


def test_a_worker_shows_what_it_does_and_what_it_serves(browse: Browse, committed: PgConnection) -> None:
    worker(committed, queues="{mail,default}")
    progress = """'{"share": 0.25, "note": "invoice 3 of 12"}'"""
    run = run_in(committed, Status.RUNNING, locked_by="'web-1'", started_at="now()", progress=progress)["id"]
    shown = browse("read").get("/workers")
    assert "busy web-1 7" in shown.text
    assert f"{run} noop" in shown.text
    assert "invoice 3 of 12" in shown.text
    assert 'value="0.25"' in shown.html
    assert "1 of 4 mail, default 2 job types noop, send_mail 1.2" in shown.text


def test_a_worker_without_runs_is_idle(browse: Browse, committed: PgConnection) -> None:
    worker(committed)
    assert "idle web-1 7 nothing 0 of 4 all queues" in browse("read").get("/workers").text


def test_a_silent_worker_is_explained(browse: Browse, committed: PgConnection) -> None:
    worker(committed, silent="100 seconds")
    run_in(committed, Status.RUNNING, locked_by="'web-1'", started_at="now()")
    shown = browse("read").get("/workers").text
    assert "silent web-1" in shown
    assert "it was killed, is hung, or cannot reach the database" in shown
    assert "Another worker takes over its runs when their leases expire." in shown


def test_those_that_stopped_are_shown_on_request(browse: Browse, committed: PgConnection) -> None:
    worker(committed)
    worker(committed, "web-2", silent="2 hours", stopped="2 hours")
    assert "web-2" not in browse("read").get("/workers").text
    assert "stopped web-2 7 stopped 2 h ago" in browse("read").get("/workers?stopped=yes").text


def test_due_runs_that_no_worker_serves_are_named(browse: Browse, committed: PgConnection) -> None:
    worker(committed, queues="{default}")
    run_in(committed, Status.QUEUED, queue="'reports'", run_at="now() - interval '20 minutes'")
    shown = browse("read").get("/workers")
    assert "No worker serves noop in the queue reports : 1 run is due; the first became due 20 min ago" in shown.text
    assert "/admin/queues/reports" in shown.links


def test_below_them_is_what_was_handed_over(browse: Browse, committed: PgConnection) -> None:
    worker(committed)
    assert "consumer" not in browse("read").get("/workers").text
    assert "consumer" not in browse("read").get("").text
    begun_at = {"started_at": "now() - interval '10 minutes'"}
    first, _, begun, silent = (
        run_in(committed, Status.RUNNING, locked_by=f"'{holder}'", **begun_at, **columns)["id"]
        for holder, columns in (
            (MESSAGE, {}),
            (MESSAGE, {}),
            ("consumer gpu-1:71:abc", {}),
            ("consumer gpu-2:72:abc", {"updated_at": "now() - interval '100 seconds'"}),
        )
    )
    shown = browse("read").get("/workers")
    assert f"shop.send parcels 2 {first} , 10 min ago" in shown.text
    assert f"busy gpu-1 71 {begun} noop, 10 min ago 1 now" in shown.text
    assert f"silent gpu-2 72 {silent} noop, 10 min ago No heartbeat for 1 min 40 s: it was killed" in shown.text
    assert {f"/admin/runs/{run_id}" for run_id in (first, begun, silent)} <= {*shown.links}
    assert "2 runs wait for a consumer; 2 consumers perform 2 runs." in browse("read").get("").text
