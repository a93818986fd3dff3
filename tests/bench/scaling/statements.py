"""What single statements cost a server: exchanges by their size and beside others, enqueues, heartbeats, a vacuum."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from rowcall import queue
from rowcall.base.database import PgConnection, connect_internal, fetch_all, fetch_value
from rowcall.queue.lease import Lease
from rowcall.queue.sleepers import awake, fall_asleep
from rowcall.queue.workers import Registration, register
from tests.bench.costs import FINISHED, WAL, many, one_by_one
from tests.bench.history import backend_seconds, exchanges
from tests.bench.measures import Bench
from tests.bench.scaling.usage import cpu_us
from tests.support.pooler import pgbouncer
from tests.support.processes import children_of

Table = dict[int, float]

# Runs for each exchange; the last one is a full batch, and none is a look that finds nothing.
SIZES = {0: 300, 1: 400, 10: 200, 100: 60, 500: 30}
PACED_SIZES, PAUSE_SECONDS = {0: 300, 1: 300, 10: 150}, 0.005
WARM_UP = 20
ROUNDS = 2
CLAIMERS = (1, 2, 4, 8, 16, 32, 64)
LEASES = (1, 10, 100)
HISTORY_ROWS, VACUUMED = 200_000, 5_000

VACUUM = "VACUUM (VERBOSE) rowcall.job_runs"
BUFFERS = re.compile(r"buffer usage: (\d+) hits, (\d+) misses, (\d+) dirtied")
VACUUM_WAL = re.compile(r"WAL usage: .* (\d+) bytes")
# Autovacuum counts a page that it finds as 1, one that it reads as 2, and one that it makes dirty as 20.
PAGE_COSTS = (1, 2, 20)
SPACE = """
SELECT pg_table_size('rowcall.job_runs')::float8 / count(*) AS table_bytes,
    pg_indexes_size('rowcall.job_runs')::float8 / count(*) AS index_bytes
FROM rowcall.job_runs
"""


def internal(url: str) -> closing[PgConnection]:
    """Connect as a worker does."""
    connection = connect_internal(url, "rowcall bench")
    connection.autocommit = True
    return closing(connection)


def exchange_costs(bench: Bench) -> tuple[Table, Table]:
    """Return the server's microseconds and the bytes of WAL of an exchange that ends and claims this many runs."""
    found = {size: exchange(bench, size, count) for size, count in SIZES.items()}
    return {size: us for size, (us, _) in found.items()}, {size: wal for size, (_, wal) in found.items()}


def paced_costs(bench: Bench) -> Table:
    """Return the microseconds of exchanges with pauses between them: the processor's caches forget in the meantime."""
    return {size: exchange(bench, size, count, PAUSE_SECONDS)[0] for size, count in PACED_SIZES.items()}


def exchange(bench: Bench, size: int, count: int, pause: float = 0.0) -> tuple[float, float]:
    """Return microseconds and bytes of one exchange; nothing else may use the server."""
    bench.fill(size * (count + WARM_UP))
    with internal(bench.url) as connection:
        steps = exchanges(connection, {"shop_nothing": 60.0}, max(size, 1))
        for _ in range(WARM_UP):
            next(steps)
        wal, used = fetch_value(connection, WAL), backend_seconds(connection)
        for _ in range(count):
            time.sleep(pause)  # what is measured
            next(steps)
        used = backend_seconds(connection) - used
        return used / count * 1e6, (fetch_value(connection, WAL) - wal) / count


def contention(bench: Bench) -> Table:
    """Return how much more a run costs with this many claimers at the same time, each with 10 runs an exchange.

    They take turns, and the least counts, because a neighbour on the machine only adds to what a run costs.
    """
    found: dict[int, list[float]] = {claimers: [] for claimers in CLAIMERS}
    for _ in range(ROUNDS):
        for claimers, costs in found.items():
            costs.append(_contended(bench, claimers))
    return {claimers: min(costs) / min(found[1]) for claimers, costs in found.items()}


def _contended(bench: Bench, claimers: int, runs: int = 4_000) -> float:
    bench.fill(runs)
    done: list[int] = []

    def drain(connection: PgConnection) -> None:
        for claimed in exchanges(connection, {"shop_nothing": 60.0}, 10):
            done.append(claimed)
            if not claimed and sum(done) >= runs:
                return

    with ExitStack() as stack, ThreadPoolExecutor(claimers) as threads:
        connections = [stack.enter_context(internal(bench.url)) for _ in range(claimers)]
        pids = [connection.info.backend_pid for connection in connections]
        used = cpu_us(pids)
        for drained in [threads.submit(drain, connection) for connection in connections]:
            drained.result()
        return (cpu_us(pids) - used) / runs


def enqueue(bench: Bench, count: int = 500, at_once: int = 1_000) -> tuple[Table, Table]:
    """Return the server's microseconds and the bytes of WAL of a transaction that enqueues one or a thousand runs."""
    bench.fill(0)
    with closing(bench.connect()) as connection:
        us, wal = _of_each(connection, count, lambda: one_by_one(connection, count))
        many_us, many_wal = _of_each(connection, 1, lambda: many(connection, at_once))
    return {1: us, at_once: many_us}, {1: wal, at_once: many_wal}


def asleep(bench: Bench, count: int = 200) -> tuple[float, float]:
    """Return microseconds and bytes of the two statements with which a worker falls asleep and wakes up."""
    bench.fill(0)
    with closing(bench.connect()) as connection:
        register(connection, Registration("bench", "bench", 0, "0", None, ["shop_nothing"], 1))
        found = _of_each(connection, count, lambda: _sleep_and_wake(connection, count))
        fetch_all(connection, "DELETE FROM rowcall.workers")
    return found


def _sleep_and_wake(connection: PgConnection, count: int) -> None:
    for _ in range(count):
        fall_asleep(connection, "bench", 60)
        awake(connection, "bench")


def heartbeat(bench: Bench) -> Table:
    """Return the server's microseconds of a heartbeat that renews this many leases."""
    found: Table = {}
    for leases in LEASES:
        bench.fill(leases)
        with internal(bench.url) as connection:
            next(exchanges(connection, {"shop_nothing": 60.0}, leases))
            rows = fetch_all(connection, "SELECT locked_by, id, lease_no FROM rowcall.job_runs")
            held = {Lease(row["locked_by"], row["id"], row["lease_no"]): 60.0 for row in rows}
            found[leases], _ = _of_each(connection, 100, lambda held=held: _beat(connection, held))  # type: ignore[misc]
    return found


def _beat(connection: PgConnection, held: Mapping[Lease, float]) -> None:
    for _ in range(100):
        assert len(queue.heartbeat(connection, held)) == len(held)


def _of_each(connection: PgConnection, count: int, work: Callable[[], object]) -> tuple[float, float]:
    work()  # so that nothing is planned for the first time
    wal, used = fetch_value(connection, WAL), backend_seconds(connection)
    work()
    used = backend_seconds(connection) - used
    return used / count * 1e6, (fetch_value(connection, WAL) - wal) / count


def vacuum(bench: Bench) -> dict[str, float]:
    """Return what autovacuum does for each run, if it comes when a hundredth of the table is dead, as it is set."""
    bench.fill(VACUUMED, FINISHED.format(count=HISTORY_ROWS))
    with internal(bench.url) as connection:
        _drain(connection)
    with closing(bench.connect()) as connection:
        used = backend_seconds(connection)
        fetch_all(connection, VACUUM)
        used = backend_seconds(connection) - used
        said = "".join(connection.notices)
    pages = [sum(map(int, column)) for column in zip(*BUFFERS.findall(said), strict=True)]
    return {
        "server_us": used / VACUUMED * 1e6,
        "wal": sum(map(int, VACUUM_WAL.findall(said))) / VACUUMED,
        "page_cost": sum(cost * number for cost, number in zip(PAGE_COSTS, pages, strict=True)) / VACUUMED,
    }


def _drain(connection: PgConnection) -> None:
    """Claim and finish until nothing is left."""
    for claimed in exchanges(connection, {"shop_nothing": 60.0}):
        if not claimed:
            return


def space(bench: Bench, runs: int = 30_000) -> dict[str, float]:
    """Return how many bytes of the table and of its indexes a finished run takes."""
    bench.fill(runs)
    with internal(bench.url) as connection:
        _drain(connection)
        return dict(fetch_all(connection, SPACE)[0])


def pooled(bench: Bench, folder: Path) -> dict[str, float]:
    """Return the server's and PgBouncer's microseconds of an exchange of ten runs through PgBouncer."""
    before = set(children_of(os.getpid()))
    with pgbouncer(bench.url, "transaction", folder) as url:
        [pooler] = set(children_of(os.getpid())) - before
        bench.fill(2_000)
        with internal(url) as connection:
            steps = exchanges(connection, {"shop_nothing": 60.0}, 10)
            for _ in range(WARM_UP):
                next(steps)
            backends = [row["pid"] for row in fetch_all(connection, "SELECT pg_backend_pid() AS pid")]
            server, own = cpu_us(backends), cpu_us([pooler])
            for _ in range(100):
                next(steps)
            return {"server_us": (cpu_us(backends) - server) / 100, "pooler_us": (cpu_us([pooler]) - own) / 100}


def disk(folder: Path) -> dict[str, float]:
    """Return how long the disk takes to confirm 8 KiB, and how many bytes a second it confirms in large pieces."""
    path = folder / "disk"
    with path.open("wb") as file:
        times = sorted(_confirmed(file.fileno(), 8 * 2**10) for _ in range(200))
        large = sorted(_confirmed(file.fileno(), 16 * 2**20) for _ in range(5))
    path.unlink()
    return {"flush_us": times[100] * 1e6, "bytes_per_second": 16 * 2**20 / large[2]}


def _confirmed(descriptor: int, size: int) -> float:
    began = time.perf_counter()
    os.write(descriptor, bytes(size))
    os.fdatasync(descriptor)
    return time.perf_counter() - began
