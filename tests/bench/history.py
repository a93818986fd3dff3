"""What a run costs the server beside finished runs: databases with more and more of them take turns batch by batch."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from psycopg2.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import make_url

from rowcall.base.database import PgConnection, connect_internal
from rowcall.queue.claims.exchange import exchange
from rowcall.queue.claims.request import ClaimRequest
from rowcall.queue.finish import Done
from rowcall.queue.lease import Lease
from rowcall_worker.runtime.claims.lanes import Lanes
from rowcall_worker.runtime.claims.sweeper import INTERVAL_SECONDS, Sweeper
from tests.bench.costs import FINISHED
from tests.bench.measures import MORE, asked

AT_ONCE = 500

# How many times as much as beside none a run may cost: the speed is then 0.95 and 0.9 of itself.
LIMITS = {1_000_000: 1 / 0.95, 10_000_000: 1 / 0.9}

# Microseconds of the server's CPU time for each run, by the number of finished runs beside it.
Round = Mapping[int, float]


def exchanges(connection: PgConnection, leases: Mapping[str, float], at_once: int = AT_ONCE) -> Iterator[int]:
    """Send a worker's statements; yield after each exchange how many runs it claimed, which the next one finishes."""
    worker = f"bench-{connection.info.backend_pid}"
    lanes = Lanes()
    sweeper = Sweeper(INTERVAL_SECONDS, lanes)
    request = ClaimRequest(leases, at_once)
    finished: list[Done] = []
    while True:
        sweeper.sweep(connection, request)
        visits = lanes.visits()
        try:
            result = exchange(connection, worker, finished, replace(request, lanes=visits))
        except (DeadlockDetected, LockNotAvailable):
            continue  # a worker tries again too
        lanes.claimed(visits, result, full=len(result.claimed) == at_once)
        finished = [Done(Lease(worker, run.run_id, run.lease_no), None) for run in result.claimed]
        yield len(finished)


@contextmanager
def beside(url: str, sizes: Sequence[int]) -> Iterator[dict[int, str]]:
    """Copy the migrated, empty database of this URL once for each number of finished runs, and yield the copies' URLs.

    The role of the URL must be a superuser.
    """
    template = make_url(url)
    names = {size: f"beside_{size}" for size in sizes}
    urls = {size: template.set(database=name).render_as_string(False) for size, name in names.items()}
    try:
        for size, copy in urls.items():
            asked(url, f"CREATE DATABASE {names[size]} TEMPLATE {template.database}")
            asked(copy, FINISHED.format(count=size))
        yield urls
    finally:
        for name in names.values():
            asked(url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def rounds(urls: Mapping[int, str], runs: int, count: int) -> list[Round]:
    """Drain this many runs in each database, batch by batch in turns, and repeat it.

    Each time begins with the sweep of a worker that starts, so that its cost is measured too.  The first time is not
    counted: the sessions then read the catalogs, and plan their statements.
    """
    with ExitStack() as stack:
        connections = {size: stack.enter_context(closing(_internal(url))) for size, url in urls.items()}
        found = []
        for number in range(count + 1):
            for url in urls.values():
                asked(url, MORE, {"count": runs})
                if not number:
                    asked(url, "VACUUM (ANALYZE) rowcall.job_runs")
                    asked(url, "CHECKPOINT")
            found.append(_round(connections, runs))
        return found[1:]


def _round(connections: Mapping[int, PgConnection], runs: int) -> Round:
    used = {size: backend_seconds(connection) for size, connection in connections.items()}
    drains = [_drained(connection) for connection in connections.values()]
    assert [sum(done) for done in zip(*zip_longest(*drains, fillvalue=0), strict=True)] == [runs] * len(drains)
    return {size: (backend_seconds(connections[size]) - used[size]) / runs * 1e6 for size in connections}


def _drained(connection: PgConnection) -> Iterator[int]:
    for claimed in exchanges(connection, {"shop_nothing": 60.0}):
        yield claimed
        if not claimed:
            return


class Grown(NamedTuple):
    """How many times as much as beside no finished runs a run costs beside this many: quartiles of the rounds."""

    size: int
    low: float
    median: float
    high: float

    @property
    def too_much(self) -> bool:
        """Return whether three of four rounds exceed the limit, so that the median does by more than their spread."""
        return self.low > LIMITS[self.size]

    def __str__(self) -> str:
        """Return the ratio, its quartiles and the limit."""
        return f"{self.median:.3f} of none ({self.low:.3f} to {self.high:.3f}; limit {LIMITS[self.size]:.3f})"


def grown(found: Sequence[Round]) -> list[Grown]:
    """Compare the costs of each round, which were measured side by side."""
    ratios = {size: [costs[size] / costs[0] for costs in found] for size in found[0] if size}
    return [Grown(size, *statistics.quantiles(of, n=4, method="inclusive")) for size, of in ratios.items()]


def backend_seconds(connection: PgConnection) -> float:
    """Return the CPU time of this connection's backend, which idles; the kernel counts it in nanoseconds.

    For a process with one thread only, as a backend is: the file shows the first thread.
    """
    return int(Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1e9


def _internal(url: str) -> PgConnection:
    connection = connect_internal(url, "rowcall bench")
    connection.autocommit = True
    return connection
