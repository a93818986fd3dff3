"""What real workers use: while they idle, when they are woken in vain, and under a load."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from tests.bench.costs import LIVE
from tests.bench.history import backend_seconds
from tests.bench.measures import Bench
from tests.bench.scaling.timed_app.job_types import TIMED
from tests.bench.scaling.usage import Usage, usage
from tests.support.processes import wait_until

APP = "tests.bench.scaling.timed_app"

ASLEEP = "SELECT count(*) FROM rowcall.workers WHERE sleeps_until > now() AND stopped_at IS NULL"

# Sessions report their commits once a second, when they commit again, and when they have idled for ten seconds.
REPORTED_SECONDS = 2.5
STARTED_SECONDS = 10.0
# Of one look at what is used.
OWN_COMMITS = 4


@contextmanager
def working(bench: Bench, workers: int) -> Iterator[list[int]]:
    """Run worker processes, and yield their process ids when all of them sleep."""
    bench.fill(0)
    with closing(bench.connect()) as connection:
        fetch_all(connection, "DELETE FROM rowcall.workers")
        processes = [bench.start("worker", "run", ROWCALL_APP=APP) for _ in range(workers)]
        try:
            wait_until(lambda: fetch_value(connection, ASLEEP) == workers, "the workers sleep")
            time.sleep(REPORTED_SECONDS)  # the sessions report what they committed at the start
            yield [process.pid for process in processes]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.communicate()


def idle(bench: Bench, seconds: float) -> Usage:
    """Return what one idle worker uses in a second."""
    with working(bench, 1) as pids, closing(bench.connect()) as connection:
        time.sleep(STARTED_SECONDS)  # all sessions report what they committed at the start
        before = usage(connection, pids)
        time.sleep(seconds)  # what is measured
        return usage(connection, pids).minus(before).minus(Usage(0, 0, 0, OWN_COMMITS)).times(1 / seconds)


class Loaded(NamedTuple):
    """A load, how long it was observed, and what was used; of the session that enqueues, only its WAL and commits."""

    rate: float
    seconds: float
    used: Usage


def loaded(bench: Bench, workers: int, rate: float, seconds: float, work: float) -> Loaded:
    """Enqueue runs that take `work` one by one at random times; the rate may be lower on a busy machine."""
    with working(bench, workers) as pids, closing(bench.connect()) as connection, closing(bench.connect()) as clients:
        before, began = usage(connection, pids), time.monotonic()
        enqueued = -backend_seconds(clients)
        runs = int(rate * seconds)
        _enqueue(clients, runs, rate, work)
        took = time.monotonic() - began
        wait_until(lambda: not fetch_value(connection, LIVE), "every run has finished")
        time.sleep(REPORTED_SECONDS)  # the sessions report what they committed
        enqueued += backend_seconds(clients)
        whole = time.monotonic() - began
        used = usage(connection, pids).minus(before).minus(Usage(enqueued * 1e6, 0, 0, 0))
        return Loaded(runs / took, whole, used)


def _enqueue(connection: PgConnection, runs: int, rate: float, work: float) -> None:
    chance = random.Random(1)  # noqa: S311 - the same times in each run
    due = time.monotonic()
    for _ in range(runs):
        due += chance.expovariate(rate)
        time.sleep(max(0.0, due - time.monotonic()))  # the rate
        TIMED.enqueue(connection, {"seconds": work})
