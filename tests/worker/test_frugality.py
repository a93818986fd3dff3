"""What a run costs the database: counted, not timed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from rowcall_migrations.migrate import migrate
from tests.support.processes import rowcall, running, wait_until
from tests.support.shop import Shop

RUNS = 10_000

COUNTERS = """
SELECT xact_commit AS commits, (SELECT pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal
FROM pg_stat_database WHERE datname = current_database()
"""


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def test_many_quick_runs_share_their_commits_and_round_trips(shop: Shop) -> None:
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(RUNS)])
    before = shop.sql(COUNTERS)[0]["commits"]
    assert f"succeeded {RUNS}" in rowcall(shop.environment, "worker", "once").stdout
    commits = shop.sql(COUNTERS)[0]["commits"] - before
    # Every round trip of a worker is one commit, so this limits both.
    assert commits / RUNS <= 0.05


VERSIONS = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'rowcall.job_runs'::regclass"


def test_a_finished_run_leaves_two_dead_rows_and_its_claim_touches_no_index(shop: Shop) -> None:
    with database.transaction(shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(RUNS)])
    # Enqueued rows fill half of each page, so that nearly every claim finds room on its page.
    # No heartbeat comes in between: it would write a version of each run in flight.
    unhurried = {**shop.environment, "ROWCALL_HEARTBEAT": "40"}
    assert f"succeeded {RUNS}" in rowcall(unhurried, "worker", "once").stdout
    [versions] = shop.sql(VERSIONS)
    # A busy machine gives back some runs unbegun, and claims them again under another lease.
    [leases] = shop.sql("SELECT sum(lease_no) AS number FROM rowcall.job_runs")
    assert versions["n_tup_upd"] == 2 * leases["number"]
    assert versions["n_tup_hot_upd"] >= 0.95 * RUNS


@pytest.fixture
def quiet_shop(environment: dict[str, str], tmp_path: Path) -> Iterator[Shop]:
    """Yield a shop on a separate server: the WAL position is per server, and other tests write on the shared one."""
    with open_server(tmp_path / "quiet", options={**UNSAFE_AND_FAST, "autovacuum": "off"}) as server:
        migrate(server.url, lock_timeout=3)
        yield Shop(environment, server.url)


def test_a_finished_run_writes_little_log(quiet_shop: Shop) -> None:
    with database.transaction(quiet_shop.url) as connection:
        queue.enqueue_many(connection, "noop", [{"number": number} for number in range(RUNS)])
    before = quiet_shop.sql(COUNTERS)[0]["wal"]
    assert f"succeeded {RUNS}" in rowcall(quiet_shop.environment, "worker", "once").stdout
    cost = (quiet_shop.sql(COUNTERS)[0]["wal"] - before) / RUNS
    # Measured: 740 to 1,030, depending on how pages fill; another index on claim or heartbeat would add about 500.
    assert cost <= 1400


STATEMENT = re.compile(r"^rowcall worker \w+ LOG:  statement: ", re.MULTILINE)
CONNECTION = re.compile(r"LOG:  connection authorized: .*application_name=rowcall worker")


@pytest.fixture
def told_shop(environment: dict[str, str], tmp_path: Path) -> Iterator[tuple[Shop, Path]]:
    """Yield a shop on a separate server, and that server's log of connections and statements."""
    told = {**UNSAFE_AND_FAST, "log_statement": "all", "log_connections": "on", "log_line_prefix": "%a "}
    with open_server(tmp_path / "told", options=told) as server:
        migrate(server.url, lock_timeout=3)
        [log] = tmp_path.rglob("postgres.log")
        yield Shop(environment, server.url), log


def test_worker_once_with_nothing_due_asks_little(told_shop: tuple[Shop, Path]) -> None:
    shop, log = told_shop
    rowcall(shop.environment, "worker", "once")  # the first tick of all
    written = len(log.read_text())
    assert "claimed 0" in rowcall(shop.environment, "worker", "once").stdout
    told = log.read_text()[written:]
    assert (len(CONNECTION.findall(told)), len(STATEMENT.findall(told))) == (1, 2)


def test_worker_once_with_nothing_due_takes_little_more_time_than_its_imports(shop: Shop) -> None:
    def cpu_seconds(*command: str) -> float:
        before = os.times()
        subprocess.run(command, env=shop.environment, check=True, capture_output=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    once = tuple(own_command("worker", "once"))
    imports = (sys.executable, "-c", "import psycopg2, click, marshmallow")
    # The least of several, because a busy machine only makes it more.
    least = {command: min(cpu_seconds(*command) for _ in range(5)) for command in (once, imports)}
    # Measured: 2.2 to 2.5 times; with Flask among the imports 3.1 to 3.4, with SQLAlchemy 3.9 to 4.8.
    assert least[once] <= 3 * least[imports]


NOW = "SELECT extract(epoch FROM clock_timestamp())::float8 AS now"


def test_an_idle_worker_asks_little(told_shop: tuple[Shop, Path]) -> None:
    shop, log = told_shop
    usual = {
        name: value for name, value in shop.environment.items() if name not in ("ROWCALL_POLL", "ROWCALL_HEARTBEAT")
    }
    with running(usual, "worker", "run"):
        asleep = "SELECT FROM rowcall.workers WHERE sleeps_until > now()"
        wait_until(lambda: shop.sql(asleep), "the worker sleeps")
        written, began = len(log.read_text()), shop.sql(NOW)[0]["now"]
        shop.sql("SELECT pg_sleep(20)")
        minutes = (shop.sql(NOW)[0]["now"] - began) / 60
        statements = STATEMENT.findall(log.read_text()[written:])
    # Measured: 540 to 582 a minute with the default settings.  A busy machine only makes it fewer.
    assert 1 <= len(statements) / minutes <= 650
