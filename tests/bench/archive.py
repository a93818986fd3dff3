"""What a long history costs: a claim, pruning, lists and one run, beside millions of archived runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import click

from rowcall import queue
from rowcall.base.database import PgConnection, connect_internal, fetch_all, fetch_value
from rowcall.queue import Filter
from rowcall.queue.retention.prune import BEGINNING, Retention, prune_page, read_page
from rowcall.queue.views.pages import Order
from rowcall.status import FINAL, Status
from tests.bench.costs import in_process
from tests.bench.growth import drained
from tests.bench.measures import Bench

# As a team would keep them: three years.
MONTHS, DAYS = 36, 1095
LARGEST = 10_000_000

READS = 100
PRUNED = 10_000
ONE_DAY = Retention(dict.fromkeys(FINAL, 1), {})
A_DAY = Filter(created_after=datetime(2021, 5, 3, tzinfo=UTC), created_before=datetime(2021, 5, 4, tzinfo=UTC))

# One run in 100 is dead, one in 10 has a key.  The times are spread over all months, whatever was inserted before.
FILL = f"""
INSERT INTO rowcall.archived_runs (id, job_type, payload, queue, priority, run_at, status, attempts, max_attempts,
    lease_no, suspect, unique_mode, key_owner, created_at, updated_at, started_at, finished_at, failed_at,
    idempotency_key, attempts_ended, log)
SELECT number, 'shop_nothing', jsonb_build_object('user_id', number), 'default', 0, moment,
    CASE WHEN number %% 100 = 0 THEN 'dead' ELSE 'succeeded' END, 1, 10, 1, 0, 'ever', 'app', moment, moment, moment,
    moment, CASE WHEN number %% 100 = 0 THEN moment END, CASE WHEN number %% 10 = 0 THEN 'order-' || number END, '[]',
    '[]'
FROM generate_series(%(first)s + 1, %(last)s) AS number CROSS JOIN LATERAL (
    VALUES (
        timestamptz '2023-01-01 00:00+00'
        - (number - %(first)s) * (interval '{DAYS} days' / (%(last)s - %(first)s)::float8)
    )
) AS times(moment)
"""
MAKE = f"""
SELECT rowcall.make_archive_month((date '2020-01-01' + number * interval '1 month')::date)
FROM generate_series(0, {MONTHS} - 1) AS number
"""
OLD = f"""
INSERT INTO rowcall.job_runs (job_type, payload, status, attempts, lease_no, created_at, started_at, finished_at)
SELECT 'shop_nothing', jsonb_build_object('user_id', number), 'succeeded', 1, 1, at, at, at
FROM generate_series(1, {PRUNED}) AS number CROSS JOIN (VALUES (timestamptz '2022-12-20 00:00+00')) AS times(at)
"""
BYTES = """
SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits
WHERE inhparent = 'rowcall.archived_runs'::regclass
"""


def show(bench: Bench, largest: int) -> None:
    """Print each figure beside none, a tenth of the largest number, and this number of archived runs."""
    figures: dict[str, dict[int, float]] = {}
    sizes = {}
    for size in (0, largest // 10, largest):
        grow(bench, size)
        with closing(_connected(bench)) as connection:
            sizes[size] = fetch_value(connection, BYTES) or 0
        for name, measure in measurements(bench):
            figures.setdefault(name, {})[size] = measure()
    head = "".join(f"{size:>16,}" for size in sizes)
    click.echo(f"\nmicroseconds of the server's CPU, by the number of archived runs in {MONTHS} months")
    click.echo(f"  {'':36}{head}")
    for name, costs in figures.items():
        click.echo(f"  {name:36}{''.join(f'{cost:16,.1f}' for cost in costs.values())}")
    click.echo(f"  {'bytes on disk, with indexes':36}{''.join(f'{size:16,}' for size in sizes.values())}")


def grow(bench: Bench, size: int) -> None:
    """Fill the archive up to this number of runs, spread over all months."""
    with closing(bench.connect()) as connection:
        fetch_all(connection, MAKE, {"months": MONTHS})
        first = fetch_value(connection, "SELECT count(*) FROM rowcall.archived_runs")
        if size > first:
            fetch_all(connection, FILL, {"first": first, "last": size})
        fetch_all(connection, "VACUUM (ANALYZE) rowcall.archived_runs")
        fetch_all(connection, "CHECKPOINT")


def measurements(bench: Bench) -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield each measurement with its name."""
    yield "claim and finish a run", partial(drained, bench)
    yield "archive a run", partial(_pruned, bench, to_table=True)
    yield "prune a run without an archive", partial(_pruned, bench, to_table=False)
    yield "a page, the newest first", partial(_read, bench, lambda one: queue.list_runs(one, Filter()))
    yield "a page, the oldest first", partial(_read, bench, lambda one: queue.list_runs(one, Filter(), order=Order.ASC))
    yield "a page of dead runs", partial(_read, bench, lambda one: queue.list_runs(one, Filter(status=(Status.DEAD,))))
    yield "a page of a day", partial(_read, bench, lambda one: queue.list_runs(one, A_DAY))
    yield "the runs with a key", partial(_read, bench, lambda one: queue.list_runs(one, Filter(key="order-7000")))
    yield "the attempts of one archived run", partial(_read, bench, lambda one: queue.attempts_of(one, 7000))


def _read(bench: Bench, read: Callable[[PgConnection], object]) -> float:
    """Return what a reader costs that asks again and again on one connection."""
    with closing(_connected(bench)) as connection:
        read(connection)
        return in_process(connection, READS, lambda: [read(connection) for _ in range(READS)]).server


def _pruned(bench: Bench, *, to_table: bool) -> float:
    """Return what housekeeping costs for each run that it prunes."""
    bench.fill(0, OLD.format(count=PRUNED))
    with closing(_connected(bench)) as connection:
        return in_process(connection, PRUNED, lambda: _prune(connection, to_table)).server


def _prune(connection: PgConnection, to_table: bool) -> None:
    place = BEGINNING
    while page := read_page(connection, ONE_DAY, place, 1000, bare=False):
        prune_page(connection, page, to_table)
        place = page.last


def _connected(bench: Bench) -> PgConnection:
    connection = connect_internal(bench.url, "rowcall bench")
    connection.autocommit = True
    return connection
