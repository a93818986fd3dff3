"""How the cost of a run and of a tick grows with rows, queues, types, definitions and keys: CPU time of the server."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

import click

from rowcall import queue
from rowcall.base.database import PgConnection, connect_internal, fetch_all
from rowcall.definitions import Resting, tick
from rowcall.job_types import catalogue
from tests.bench import history
from tests.bench.costs import cpu_seconds, in_process
from tests.bench.history import exchanges
from tests.bench.measures import Bench

RUNS = 50_000
TICKS = 200
WORKER = "bench"

# Beside finished runs, databases take turns, so that their costs can be compared.
HISTORY_ROUNDS, HISTORY_RUNS = 20, 5_000

FUTURE = """
INSERT INTO rowcall.job_runs (job_type, run_at)
SELECT 'shop_nothing', now() + interval '1 day' FROM generate_series(1, {count})
"""
LEASED = """
INSERT INTO rowcall.job_runs (job_type, status, attempts, lease_no, locked_by, locked_until, started_at)
SELECT 'shop_nothing', 'running', 1, 1, 'other', now() + interval '1 hour', now() FROM generate_series(1, {count})
"""
SPREAD = "UPDATE rowcall.job_runs SET queue = 'queue-' || id % {count} WHERE finished_at IS NULL"
KEYED = """
INSERT INTO rowcall.job_runs
    (job_type, idempotency_key, request_fingerprint, status, attempts, lease_no, started_at, finished_at)
SELECT 'shop_nothing', 'earlier-' || number, 'f', 'succeeded', 1, 1, now(), now()
FROM generate_series(1, {count}) AS number
"""
# Once a year, so that no time comes while this is measured.
DEFINITIONS = """
DELETE FROM rowcall.job_definitions;
INSERT INTO rowcall.job_definitions (name, job_type, schedule, next_run_at)
SELECT 'yearly-' || number, 'shop_nothing', '@yearly', now() + interval '300 days'
FROM generate_series(1, {count}) AS number
"""


def show(bench: Bench) -> list[str]:
    """Print each figure as soon as it is measured, and return the lines that exceed their limits."""
    click.echo("\nmicroseconds of the server's CPU")
    failed = _show_history(bench)
    for name, figure in growth(bench):
        click.echo(f"  {name:60} {figure:10,.1f}")
    return failed


def _show_history(bench: Bench) -> list[str]:
    with history.beside(bench.url, [0, *history.LIMITS]) as urls:
        found = history.rounds(urls, HISTORY_RUNS, HISTORY_ROUNDS)
    compared = {grown.size: grown for grown in history.grown(found)}
    lines = {}
    for size in urls:
        name = f"a run, beside {size:,} finished runs"
        lines[size] = f"{name:60} {statistics.median(costs[size] for costs in found):10,.1f}  {compared.get(size, '')}"
        click.echo(f"  {lines[size].rstrip()}")
    return [lines[size] for size, grown in compared.items() if grown.too_much]


def growth(bench: Bench) -> Iterator[tuple[str, float]]:
    """Yield each other measurement with its name."""
    for count in (100_000, 1_000_000):
        yield f"a run, beside {count:,} future runs", drained(bench, FUTURE.format(count=count))
    yield "a run, beside 5,000 runs with a lease", drained(bench, LEASED.format(count=5000))
    for count in (1, 10, 100, 1000):
        yield f"a run, queues: {count:,}", drained(bench, after=SPREAD.format(count=count))
    for count in (1, 10, 100, 1000):
        yield f"a run, job types of the worker: {count:,}", drained(bench, types=count)
    for count in (1, 2, 5):
        yield f"a run, workers at the same time: {count:,}", drained(bench, workers=count)
    for count in (0, 1_000_000):
        yield f"an enqueue with a key, beside {count:,} keys", _enqueued(bench, KEYED.format(count=count))
    for count in (0, 100, 10_000):
        yield f"a tick with nothing due, with {count:,} definitions", _ticked(bench, DEFINITIONS.format(count=count))


def drained(bench: Bench, before: str = "SELECT", after: str = "SELECT", types: int = 1, workers: int = 1) -> float:
    """Return what the statements of these workers cost for each run; one thread sends those of each."""
    bench.fill(RUNS, before)
    with closing(bench.connect()) as connection:
        fetch_all(connection, after)
        fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_runs")
    leases = {"shop_nothing": 60.0, **{f"other_{number}": 60.0 for number in range(types - 1)}}
    done: list[int] = []
    with ExitStack() as stack, ThreadPoolExecutor(workers) as threads:
        connections = [stack.enter_context(_internal(bench)) for _ in range(workers)]
        pids = [connection.info.backend_pid for connection in connections]
        used = cpu_seconds(pids)
        for drained in [threads.submit(_drain, connection, leases, done) for connection in connections]:
            drained.result()
        assert sum(done) == RUNS
        return (cpu_seconds(pids) - used) / RUNS * 1e6


def _drain(connection: PgConnection, leases: dict[str, float], done: list[int]) -> None:
    """Claim and finish until nothing is left; `done` counts the runs of all workers."""
    for claimed in exchanges(connection, leases):
        done.append(claimed)
        if not claimed and sum(done) >= RUNS:
            return


def _enqueued(bench: Bench, before: str) -> float:
    bench.fill(0, before)
    with closing(bench.connect()) as connection:
        payloads = [{"order_id": number} for number in range(RUNS)]
        keys = [f"order-{number}" for number in range(RUNS)]
        insert = partial(queue.enqueue_many, connection, "shop_nothing", payloads, keys=keys)
        return in_process(connection, RUNS, insert).server


def _ticked(bench: Bench, before: str) -> float:
    bench.fill(0, before)
    with closing(bench.connect()) as connection:
        fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_definitions")
    with _internal(bench) as connection:
        return in_process(connection, TICKS, lambda: _tick(connection)).server


def _tick(connection: PgConnection) -> None:
    for _ in range(TICKS):
        tick(connection, WORKER, catalogue(), 10, Resting())


def _internal(bench: Bench) -> closing[PgConnection]:
    connection = connect_internal(bench.url, "rowcall bench")
    connection.autocommit = True
    return closing(connection)
