"""What a run costs in CPU time, of the worker or caller and of the server: other load on the machine hardly matters."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from tests.bench import bare
from tests.bench.measures import AT_ONCE, DRAINED, ONE_BY_ONE, Bench
from tests.support.processes import wait_until

# Finished runs of earlier days, which a claim must not pay for.
FINISHED = """
INSERT INTO rowcall.job_runs (job_type, status, attempts, lease_no, created_at, started_at, finished_at)
SELECT 'shop_nothing', 'succeeded', 1, 1, at, at, at FROM (
    SELECT now() - interval '1 day' + number * interval '1 microsecond' AS at FROM generate_series(1, {count}) AS number
) AS finished
"""
MILLION = FINISHED.format(count=1_000_000)

WORKERS_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'rowcall worker%'"
WAL = "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
LIVE = "SELECT EXISTS (SELECT FROM rowcall.job_runs WHERE finished_at IS NULL)"

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Microseconds of CPU time, and bytes of WAL, for each run."""

    program: float
    server: float
    wal: float


Measured = Callable[[], Cost]


def costs(bench: Bench) -> Iterator[tuple[str, Measured]]:
    """Yield each measurement with its name."""
    yield f"drain {DRAINED:,} runs, bare loop", lambda: _bare(bench)
    yield f"drain {DRAINED:,} runs, worker", lambda: worker_drain(bench)
    yield "the same with 1,000,000 finished runs, bare loop", lambda: _bare(bench, MILLION)
    yield "the same with 1,000,000 finished runs, worker", lambda: worker_drain(bench, MILLION)
    singly, together = f"enqueue {ONE_BY_ONE:,} runs one by one", f"enqueue {AT_ONCE:,} runs in one call"
    yield f"{singly}, bare insert", lambda: _inserted(bench, ONE_BY_ONE, bare.insert_one_by_one)
    yield singly, lambda: _inserted(bench, ONE_BY_ONE, one_by_one)
    yield f"{together}, bare insert", lambda: _inserted(bench, AT_ONCE, bare.insert_many)
    yield together, lambda: _inserted(bench, AT_ONCE, many)
    yield f"{together}, each with a key", lambda: _inserted(bench, AT_ONCE, many_with_keys)


def one_by_one(connection: PgConnection, count: int) -> None:
    """Enqueue runs as an app would, with one call and one commit each."""
    for number in range(count):
        queue.enqueue(connection, "shop_clock", {"order_id": number})


def many(connection: PgConnection, count: int) -> None:
    """Enqueue runs as an app would, in one transaction."""
    queue.enqueue_many(connection, "shop_clock", payloads(count))


def many_with_keys(connection: PgConnection, count: int) -> None:
    """The same with an idempotency key for each run."""
    queue.enqueue_many(connection, "shop_clock", payloads(count), keys=[f"order-{number}" for number in range(count)])


def payloads(count: int) -> list[dict[str, int]]:
    """Return payloads as apps have them."""
    return [{"order_id": number} for number in range(count)]


def _bare(bench: Bench, before: str = "") -> Cost:
    bench.fill(DRAINED, before)
    with closing(bench.connect()) as connection:
        return in_process(connection, DRAINED, lambda: bare.drain(connection))


def _inserted(bench: Bench, count: int, insert: Callable[[PgConnection, int], None]) -> Cost:
    bench.fill(0)
    with closing(bench.connect()) as connection:
        insert(connection, 1)  # so that nothing is loaded or compiled for the first time
        return in_process(connection, count, lambda: insert(connection, count))


def in_process(connection: PgConnection, count: int, work: Callable[[], object]) -> Cost:
    """Measure work of this process on one connection."""
    wal = fetch_value(connection, WAL)
    server, program = cpu_seconds([connection.info.backend_pid]), time.process_time()
    work()
    program = time.process_time() - program
    server = cpu_seconds([connection.info.backend_pid]) - server
    return _each(count, program, server, fetch_value(connection, WAL) - wal)


def worker_drain(bench: Bench, before: str = "") -> Cost:
    """Measure a worker process from its first claim until nothing is left."""
    bench.fill(DRAINED, before)
    with closing(bench.connect()) as connection:
        wal = fetch_value(connection, WAL)
        worker = bench.start("worker", "run")
        try:
            begun = "SELECT EXISTS (SELECT FROM rowcall.job_runs WHERE finished_at IS NULL AND started_at IS NOT NULL)"
            wait_until(lambda: fetch_value(connection, begun), "the worker has begun")
            program = cpu_seconds([worker.pid])
            wait_until(lambda: not fetch_value(connection, LIVE), "the worker has finished all runs")
            program = cpu_seconds([worker.pid]) - program
            server = cpu_seconds([row["pid"] for row in fetch_all(connection, WORKERS_BACKENDS)])
            return _each(DRAINED, program, server, fetch_value(connection, WAL) - wal)
        finally:
            worker.terminate()
            worker.communicate()


def _each(count: int, program: float, server: float, wal: float) -> Cost:
    return Cost(program / count * 1e6, server / count * 1e6, wal / count)


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time that these processes have used."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(of[11]) + int(of[12]) for of in fields) / TICKS_PER_SECOND
