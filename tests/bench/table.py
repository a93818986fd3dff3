"""What the table costs: the bare loop and a worker on copies of `job_runs` that lack a part of it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from contextlib import closing
from functools import partial

import click
from sqlalchemy import make_url

from tests.bench import bare
from tests.bench.costs import Cost, in_process
from tests.bench.measures import DRAINED, Bench, asked

HELD_KEY = "ALTER TABLE rowcall.job_runs DROP COLUMN held_key;"
INDEXES = """
DROP INDEX rowcall.job_runs_suspect, rowcall.job_runs_idempotency_key, rowcall.job_runs_occurrence,
    rowcall.job_runs_definition_live, rowcall.job_runs_failed, rowcall.job_runs_definition;
"""
CHECKS = """
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'rowcall.job_runs'::regclass AND contype = 'c' LOOP
        EXECUTE format('ALTER TABLE rowcall.job_runs DROP CONSTRAINT %I', name);
    END LOOP;
END
$$;
"""
TABLES = {
    "the whole table": "",
    "without held_key": HELD_KEY,
    "without its other partial indexes": INDEXES,
    "without CHECK constraints": CHECKS,
    "without all of these": HELD_KEY + INDEXES + CHECKS,
}


def show(bench: Bench, runs: int) -> None:
    """Measure the tables in turns, and print medians."""
    found: dict[str, list[Cost]] = defaultdict(list)
    rates: dict[str, list[float]] = defaultdict(list)
    for _ in range(runs):
        for name, dropped in TABLES.items():
            copy = _copied(bench, dropped)
            copy.fill(DRAINED)
            with closing(copy.connect()) as connection:
                found[name].append(in_process(connection, DRAINED, partial(bare.drain, connection)))
            rates[name].append(copy.drain(1))
    click.echo(f"\nmedians of {runs}{'':26}the loop, for each run: program us  server us   one worker, runs/s")
    for name, raw in found.items():
        program, server, _ = (statistics.median(values) for values in zip(*raw, strict=True))
        click.echo(f"  {name:60} {program:5,.1f} {server:10,.1f} {statistics.median(rates[name]):20,.0f}")


def _copied(bench: Bench, dropped: str) -> Bench:
    """Return a copy of the database, without these parts of its table."""
    url = make_url(bench.url)
    server, copy = (url.set(database=name).render_as_string(False) for name in ("postgres", "copied"))
    asked(server, "DROP DATABASE IF EXISTS copied WITH (FORCE)")
    asked(server, f'CREATE DATABASE copied TEMPLATE "{url.database}"')
    if dropped:
        asked(copy, dropped)
    return Bench(copy)
