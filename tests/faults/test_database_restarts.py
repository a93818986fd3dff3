"""The database stops, crashes and restarts under load: each acknowledged run is done, and done once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rowcall.base.child_processes import own_command
from rowcall_migrations.migrate import migrate
from tests.support.processes import rowcall, wait_until
from tests.support.server import own_server
from tests.support.shop import Shop

# Each batch is enqueued again until it is acknowledged, as a careful client would do; its keys make that harmless.
BATCH = 2
ASK_ON = f"""
import itertools, os, time
import psycopg2
from rowcall import queue
from rowcall.base import database
from rowcall.base.errors import DatabaseUnreachable

def ask(batch):
    try:
        with database.transaction(os.environ["DATABASE_URL"]) as connection:
            queue.enqueue_many(connection, "shop_ship", [{{"order_id": batch * {BATCH} + n}} for n in range({BATCH})])
            queue.enqueue_many(connection, "noop", [{{}}] * 10)
    except (psycopg2.OperationalError, DatabaseUnreachable):
        return False
    return True

for batch in itertools.count():
    while not ask(batch):
        time.sleep(0.05)  # between two tries of a server that is restarting; how long it takes is never asserted
    print(batch, flush=True)
"""

ENDINGS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
RESTARTS = 10


def test_ten_restarts_under_load_lose_no_run_and_double_none(environment: dict[str, str], tmp_path: Path) -> None:
    acknowledged = tmp_path / "acknowledged"
    with own_server(tmp_path / "server") as server:
        migrate(server.url, lock_timeout=3)
        shop = Shop(environment, server.url)
        with (
            _going_on([sys.executable, "-c", ASK_ON], shop, acknowledged) as asking,
            _going_on(own_command("worker", "run"), shop, tmp_path / "one worker") as one,
            _going_on(own_command("worker", "run"), shop, tmp_path / "another worker") as another,
        ):
            shop.wait_for_workers(2)
            for restart in range(RESTARTS):
                shop.wait_for_more(50)
                server.restart(ENDINGS[restart % len(ENDINGS)])
                shop.connect()
            shop.wait_for_more(50)
            asking.kill()
            asking.wait()
            wait_until(lambda: shop.count("queued") + shop.count("failed") == 0, "the workers have done all due runs")
            one.terminate()
            another.terminate()
            assert (one.wait(), another.wait()) == (0, 0)
        # Runs can still be running because a restart cut off the answer to their claim.
        shop.expire_leases()
        assert rowcall(shop.environment, "worker", "once").returncode == 0
        batches = len(acknowledged.read_text().split())
        orders = [row["order_id"] for row in shop.sql("SELECT order_id FROM shipments ORDER BY order_id")]
        # The last batch may have been committed without an acknowledgement.
        assert orders in (list(range(batches * BATCH)), list(range((batches + 1) * BATCH)))
        assert shop.sql("SELECT DISTINCT status FROM rowcall.job_runs") == [{"status": "succeeded"}]
        for log in tmp_path.glob("*worker.log"):
            assert '"database lost"' in log.read_text()


@contextmanager
def _going_on(command: list[str], shop: Shop, said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of the shop; its output goes to files, because a pipe that nobody reads would fill up."""
    with (
        said.open("wb") as stdout,
        said.with_suffix(".log").open("wb") as stderr,
        subprocess.Popen(command, env=shop.environment, stdout=stdout, stderr=stderr) as process,
    ):
        try:
            yield process
        finally:
            process.kill()
