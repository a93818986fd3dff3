"""`make soak`: a worker under a steady load for half an hour, and what must not grow meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from tests.bench.costs import LIVE, WORKERS_BACKENDS, cpu_seconds
from tests.bench.measures import Bench
from tests.support.processes import wait_until

# One in ten runs has a key.
KEYED = 10

# Dead rows of the queue's tables, which autovacuum removes again and again.
DEAD_ROWS = "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE schemaname = 'rowcall'"
# The index that claims read holds only unfinished runs, so its size must not follow the number of runs.
LIVE_INDEX = "SELECT pg_relation_size('rowcall.job_runs_live')"
SUCCEEDED = "SELECT count(*) FROM rowcall.job_runs WHERE status = 'succeeded'"


class Sample(NamedTuple):
    """What one moment of the soak shows; microseconds are of the server's CPU, for each run since the last sample."""

    minute: float
    enqueued: int
    resident_mb: float
    dead_rows: int
    live_index_kb: float
    server_us: float


def soak(bench: Bench, minutes: float, rate: int, every: float) -> Iterator[Sample]:
    """Enqueue this many runs a second beside one worker, and yield a sample now and then; fail unless all succeeded."""
    bench.fill(0)
    with closing(bench.connect()) as connection:
        worker = bench.start("worker", "run")
        try:
            wait_until(lambda: fetch_all(connection, WORKERS_BACKENDS), "the worker is there")
            began = sampled = time.monotonic()
            enqueued = before = 0
            cpu = _server_seconds(connection)
            while (elapsed := time.monotonic() - began) < minutes * 60:
                _enqueue(connection, enqueued, rate)
                enqueued += rate
                time.sleep(max(0.0, began + enqueued / rate - time.monotonic()))
                if time.monotonic() >= sampled + every:
                    now = _server_seconds(connection)
                    each = (now - cpu) / (enqueued - before) * 1e6
                    yield _sample(connection, worker.pid, elapsed / 60, enqueued, each)
                    sampled, before, cpu = time.monotonic(), enqueued, now
            wait_until(lambda: not fetch_value(connection, LIVE), "every run has finished")
            succeeded = fetch_value(connection, SUCCEEDED)
            if succeeded != enqueued:
                raise click.ClickException(f"only {succeeded:,} of {enqueued:,} runs succeeded")
            click.echo(f"all {enqueued:,} runs succeeded")
        finally:
            worker.terminate()
            worker.communicate()


def _enqueue(connection: PgConnection, first: int, count: int) -> None:
    keyed = count // KEYED
    payloads = [{"order_id": number} for number in range(first, first + count)]
    keys = [f"order-{number}" for number in range(first, first + keyed)]
    queue.enqueue_many(connection, "shop_nothing", payloads[:keyed], keys=keys)
    queue.enqueue_many(connection, "shop_nothing", payloads[keyed:])


def _sample(connection: PgConnection, worker: int, minute: float, enqueued: int, server_us: float) -> Sample:
    dead, live = fetch_value(connection, DEAD_ROWS), fetch_value(connection, LIVE_INDEX)
    return Sample(minute, enqueued, _resident_mb(worker), dead, live / 1024, server_us)


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _server_seconds(connection: PgConnection) -> float:
    return cpu_seconds([row["pid"] for row in fetch_all(connection, WORKERS_BACKENDS)])


def show(samples: Iterator[Sample]) -> None:
    """Print each sample as soon as it is taken."""
    click.echo(
        f"{'minute':>8} {'enqueued':>10} {'worker MB':>10} {'dead rows':>10} {'live index kB':>14} {'server us':>10}"
    )
    for one in samples:
        click.echo(
            f"{one.minute:8.1f} {one.enqueued:10,} {one.resident_mb:10.1f} {one.dead_rows:10,}"
            f" {one.live_index_kb:14,.0f} {one.server_us:10.1f}"
        )
