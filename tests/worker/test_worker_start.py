"""How a worker starts: `worker run` tries again if it cannot use the database, and `once` ends if nothing is due."""

from __future__ import annotations

import json
import re
import signal

import pytest

from rowcall.base import database
from rowcall.status import Status
from tests.support.processes import APPS, LIMIT_SECONDS, ROOT, rowcall, running
from tests.support.rows import run_in
from tests.support.silence import network


def test_a_worker_that_stays_starts_though_its_first_connections_are_dropped_and_says_so_once(
    environment: dict[str, str], fresh_url: str
) -> None:
    with network(fresh_url) as between:
        between.drop(2)
        with running({**environment, "DATABASE_URL": between.url}, "worker", "run") as worker:
            assert worker.stdout is not None
            events = [json.loads(worker.stdout.readline())["event"] for _ in range(3)]
            assert events == ["database lost", "database back", "worker started"]
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(LIMIT_SECONDS) == 0


def test_a_worker_that_does_what_is_due_leaves_a_dropped_connection_to_the_next(
    environment: dict[str, str], fresh_url: str
) -> None:
    with network(fresh_url) as between:
        between.drop(1)
        ended = rowcall({**environment, "DATABASE_URL": between.url}, "worker", "once")
    assert ended.returncode == 3
    assert "no connection to" in ended.stderr


@pytest.mark.parametrize("wrong", ["database", "password", "option"])
def test_a_worker_does_not_try_again_with_a_wrong_url(environment: dict[str, str], fresh_url: str, wrong: str) -> None:
    urls = {
        "database": f"{fresh_url}_of_nobody",
        "password": re.sub("://rowcall:[^@]*@", "://rowcall:wrong@", fresh_url),
        "option": f"{fresh_url}?no_such_option=1",
    }
    ended = rowcall({**environment, "DATABASE_URL": urls[wrong]}, "worker", "run")
    assert ended.returncode == 3
    assert "database lost" not in ended.stderr


def test_a_worker_of_cron_that_finds_nothing_due_ends_before_its_next_poll(
    environment: dict[str, str], fresh_url: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url, "ROWCALL_POLL": "60"}
    ended = rowcall(here, "worker", "once", "--max-time", "20")
    assert '"reason": "nothing that it serves is due"' in ended.stderr


def test_a_worker_registers_how_often_it_sends_a_heartbeat(environment: dict[str, str], fresh_url: str) -> None:
    """With a short lease, this is more often than the setting says."""
    here = {**environment, "DATABASE_URL": fresh_url, "ROWCALL_APP": "shop", "PYTHONPATH": f"{APPS}:{ROOT}"}
    for types in ("noop", "shop_pack"):
        assert rowcall({**here, "ROWCALL_HEARTBEAT": "20"}, "worker", "once", "--types", types).returncode == 0
    with database.transaction(fresh_url) as connection:
        rows = database.fetch_all(connection, "SELECT heartbeat_seconds FROM rowcall.workers ORDER BY started_at")
    assert [row["heartbeat_seconds"] for row in rows] == [20, 10]


def test_a_worker_without_an_app_warns_of_the_runs_that_no_worker_serves(
    environment: dict[str, str], fresh_url: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.QUEUED, job_type="'shop_pack'", run_at="now() - interval '1 hour'")
        run_in(connection, Status.QUEUED, job_type="'shop_ring'")
    ended = rowcall(here, "worker", "once")
    warning = [json.loads(line) for line in ended.stderr.splitlines() if "due runs unserved" in line]
    assert ended.returncode == 0
    assert [(line["level"], line["runs"], line["job_types"]) for line in warning] == [
        ("warning", 2, ["shop_pack", "shop_ring"])
    ]
    assert warning[0]["remedy"] == "set ROWCALL_APP to the package that declares them"
    shop = {**here, "ROWCALL_APP": "shop", "PYTHONPATH": f"{APPS}:{ROOT}"}
    assert "due runs unserved" not in rowcall(shop, "worker", "once", "--types", "noop").stderr
