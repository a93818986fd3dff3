"""The measurements: each function does one run and returns a number."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TypeAlias

from rowcall import queue
from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.base.database import PgConnection
from rowcall.queue.sleepers import fall_asleep
from rowcall.queue.workers import Registration, register
from tests.bench import bare
from tests.support.processes import APPS, ROOT, wait_until

DRAINED = 100_000
ONE_BY_ONE = 2_000
AT_ONCE = 10_000
ENQUEUERS = 16
ENQUEUED_EACH = 200
PICKUPS = 100
PICKUP_PAUSE_SECONDS = 0.02

MORE = """
INSERT INTO rowcall.job_runs (job_type, payload)
SELECT 'shop_nothing', jsonb_build_object('user_id', number) FROM generate_series(1, %(count)s) AS number
"""

# Rows in front of the runs to drain: 200,000 due runs of a type that no worker here serves, or 5,000 queues with one
# such run each.
UNSERVED = """
INSERT INTO rowcall.job_runs (job_type, run_at)
SELECT 'unserved', now() - interval '1 hour' FROM generate_series(1, 200000)
"""
QUEUES = """
INSERT INTO rowcall.job_runs (job_type, queue)
SELECT 'unserved', 'queue-' || number FROM generate_series(1, 5000) AS number
"""

# From the first claim to the last finish by the database's clock, without Python's start.
SPAN = """
SELECT count(*) AS finished, extract(epoch FROM max(finished_at) - min(started_at))::float8 AS seconds
FROM rowcall.job_runs WHERE status = 'succeeded'
"""

# What else happens in a database while something is measured.
Beside: TypeAlias = Callable[[str], AbstractContextManager[None]]


def asked(url: str, sql: str, parameters: Mapping[str, object] | None = None) -> None:
    """Run one statement in its own transaction."""
    with closing(database.connect(url)) as connection:
        connection.autocommit = True
        database.fetch_all(connection, sql, parameters)


def as_the_shop() -> None:
    """Let this process's children, such as workers, use the shop, whose handler returns when it was called."""
    os.environ.update(ROWCALL_APP="shop", PYTHONPATH=f"{APPS}:{ROOT}")


def processor() -> str:
    """Return the name of this machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


class Bench:
    """A database to measure on."""

    def __init__(self, url: str) -> None:
        self.url = url

    def bare_drain(self) -> float:
        """Return runs per second of the bare loop."""
        self.fill(DRAINED)
        connection = self.connect()
        started = time.monotonic()
        done = bare.drain(connection)
        rate = done / (time.monotonic() - started)
        connection.close()
        assert done == DRAINED
        return rate

    def drain_under_a_snapshot(self) -> float:
        """Return runs per second of one process, while an old snapshot keeps the dead rows of two earlier drains."""
        reader = database.connect(self.url, "rowcall bench")
        reader.set_session(isolation_level="REPEATABLE READ")
        self.fill(0)
        database.fetch_all(reader, "SELECT count(*) FROM rowcall.job_runs")
        connection = self.connect()
        for _ in range(3):
            database.fetch_all(connection, MORE, {"count": DRAINED})
            began = database.fetch_value(connection, "SELECT now()")
            self.start("worker", "once").communicate()
        span = database.fetch_all(connection, f"{SPAN} AND started_at >= %(began)s", {"began": began})[0]
        connection.close()
        reader.close()
        assert span["finished"] == DRAINED
        return float(span["finished"] / span["seconds"])

    def drain(self, processes: int, before: str = "", beside: Beside | None = None) -> float:
        """Return runs per second of whole worker processes, with these rows in front of the runs, beside something."""
        self.fill(DRAINED, before)
        with beside(self.url) if beside else nullcontext():
            workers = [self.start("worker", "once") for _ in range(processes)]
            for worker in workers:
                worker.communicate()
        connection = self.connect()
        span = database.fetch_all(connection, SPAN)[0]
        connection.close()
        assert span["finished"] == DRAINED
        return float(span["finished"] / span["seconds"])

    def insert(self, count: int, insert: Callable[[PgConnection, int], None]) -> float:
        """Return rows per second of this way to insert them."""
        self.fill(0)
        connection = self.connect()
        started = time.monotonic()
        insert(connection, count)
        rate = count / (time.monotonic() - started)
        connection.close()
        return rate

    def enqueuers(self, *worker: str, notifies: bool = True) -> float:
        """Return commits per second of many clients that enqueue one run at a time, beside a worker with these options.

        Without `notifies`, the statement wakes no worker, and the worker polls.
        """
        self.fill(0)
        connection = self.connect()
        settings = {} if notifies else {"ROWCALL_POLL": "0.01"}
        idle = self.start("worker", "run", *worker, **settings) if worker else None
        asleep = "SELECT count(*) FROM rowcall.workers WHERE sleeps_until > now()"
        if idle is not None:
            wait_until(lambda: database.fetch_value(connection, asleep), "the worker sleeps")
        if not notifies:
            database.fetch_all(connection, "ALTER FUNCTION rowcall.wake RENAME TO other_wake")
            database.fetch_all(connection, "CREATE FUNCTION rowcall.wake(text, text) RETURNS void LANGUAGE sql AS ''")
        threads = [threading.Thread(target=self._enqueue) for _ in range(ENQUEUERS)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = ENQUEUERS * ENQUEUED_EACH / (time.monotonic() - began)
        if not notifies:
            database.fetch_all(connection, "DROP FUNCTION rowcall.wake(text, text)")
            database.fetch_all(connection, "ALTER FUNCTION rowcall.other_wake RENAME TO wake")
        connection.close()
        if idle is not None:
            idle.terminate()
            idle.communicate()
        return rate

    def _enqueue(self) -> None:
        connection = self.connect()
        for number in range(ENQUEUED_EACH):
            queue.enqueue(connection, "shop_nothing", {"order_id": number})
        connection.close()

    def bare_pickup(self) -> float:
        """Return the median milliseconds from commit to claim by the bare loop, which listens."""
        taken: dict[int, float] = {}
        stopped = threading.Event()
        self.fill(0)
        listening = self.connect()
        register(listening, Registration("bare", "bench", 0, "0", None, ["shop_clock"], 1))
        fall_asleep(listening, "bare", 3600)
        thread = threading.Thread(
            target=bare.listen,
            args=(listening, lambda run: taken.__setitem__(run.run_id, time.time()), stopped.is_set),
        )
        thread.start()
        asked = self._ask_slowly()
        wait_until(lambda: len(taken) == len(asked), "the bare loop took every run")
        stopped.set()
        thread.join()
        database.fetch_all(listening, "DELETE FROM rowcall.workers")
        listening.close()
        return statistics.median((taken[run_id] - moment) * 1000 for run_id, moment in asked.items())

    def pickup(self) -> float:
        """Return the median milliseconds from commit to the first line of an idle worker's handler."""
        self.fill(0)
        worker = self.start("worker", "run")
        connection = self.connect()
        serving = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'rowcall worker notifier%'"
        wait_until(lambda: database.fetch_value(connection, serving), "the worker listens")
        asked = self._ask_slowly()
        count = "SELECT count(*) FROM rowcall.job_runs WHERE status = 'succeeded'"
        wait_until(lambda: database.fetch_value(connection, count) == len(asked), "the worker did every run")
        rows = database.fetch_all(connection, "SELECT id, (result ->> 'at')::float8 AS at FROM rowcall.job_runs")
        connection.close()
        worker.terminate()
        worker.communicate()
        return float(statistics.median((row["at"] - asked[row["id"]]) * 1000 for row in rows))

    def _ask_slowly(self) -> dict[int, float]:
        """Enqueue runs with pauses in which the worker becomes idle; return run id -> commit time."""
        asked = {}
        connection = self.connect()
        for number in range(PICKUPS):
            time.sleep(PICKUP_PAUSE_SECONDS)  # the worker must be waiting when the next run comes
            outcome = queue.enqueue(connection, "shop_clock", {"order_id": number})
            asked[outcome.run_id] = time.time()
        connection.close()
        return asked

    def fill(self, count: int, before: str = "") -> None:
        """Empty the tables, and insert these rows and then this many due runs."""
        connection = self.connect()
        database.fetch_all(connection, f"TRUNCATE rowcall.job_runs CASCADE; {before}; {MORE}", {"count": count})
        database.fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_runs")
        database.fetch_all(connection, "CHECKPOINT")
        connection.close()

    def connect(self) -> PgConnection:
        """Connect as an app does, in autocommit."""
        connection = database.connect(self.url, "rowcall bench")
        connection.autocommit = True
        return connection

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start a command of Rowcall."""
        environment = {**os.environ, "DATABASE_URL": self.url, **settings}
        return subprocess.Popen(
            own_command(*arguments), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
