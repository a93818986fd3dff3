"""What a run costs the database: counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from rowcall_migrations.migrate import migrate
from tests.support.processes import rowcall
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
