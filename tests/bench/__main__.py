"""`make bench`: take measurements in turns, and print ratios and every raw run."""

from __future__ import annotations

import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from rowcall.base import settings
from rowcall.job_types import catalogue
from rowcall.local_postgres.server import open_server
from rowcall_migrations.migrate import migrate
from tests.bench import archive, bare, effects, growth, http, soak, table
from tests.bench.costs import Cost, costs, many, many_with_keys, one_by_one
from tests.bench.listeners import AWAITED, FOLLOWERS, WAITERS, following, waiting
from tests.bench.measures import AT_ONCE, DRAINED, ENQUEUERS, ONE_BY_ONE, QUEUES, UNSERVED, Bench, as_the_shop
from tests.bench.plans import compare_sizes
from tests.bench.scaling.measure import write_costs
from tests.support.processes import APPS
from tests.support.superuser import let_do_all

Figure = Callable[[], float]

# What a web process imports anyway, and what Rowcall adds; marshmallow is the only other package that enqueuing loads.
IMPORTS = (
    "import psycopg2",
    "import psycopg2, marshmallow",
    "import rowcall",
    "from rowcall import JobType, enqueue",
    "from rowcall import EffectKind, JobType, enqueue",
)


PARTS = ("costs", "table", "speed", "plans", "archive", "growth", "soak", "scaling")

# How often a soak looks.
SAMPLES = 20


@click.command()
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="How often to measure each figure.")
@click.option("--part", type=click.Choice(["all", *PARTS]), default="all", show_default=True, help="What to measure.")
@click.option("--minutes", default=30.0, show_default=True, help="How long the soak takes.")
@click.option("--rate", default=600, show_default=True, help="How many runs the soak enqueues in a second.")
@click.option(
    "--archived", type=click.IntRange(10), default=archive.LARGEST, show_default=True, help="How many runs to archive."
)
def main(runs: int, part: str, minutes: float, rate: int, archived: int) -> None:
    """Measure what a run costs (costs), what parts of its table cost (table), how fast Rowcall is beside plain SQL
    (speed), what a long history costs (archive), how costs grow (growth), what API and page read of large tables
    (plans), what a steady load makes grow (soak), or what `make simulate` computes with (scaling, which writes
    docs/benchmarks/costs.json); `all` leaves out the last two."""
    if part == "scaling":
        write_costs(settings.read().postgres or "auto")
    if part == "soak":
        with bench_server() as bench:
            soak.show(soak.soak(bench, minutes, rate, minutes * 60 / SAMPLES))
    if part in {"all", "plans"}:
        measure_plans()
    if part in {"all", "archive"}:
        with bench_server() as bench:
            archive.show(bench, archived)
    for name, measure in ON_A_SERVER.items():
        if part in {"all", name}:
            with bench_server() as bench:
                measure(bench, runs)


def measure_plans() -> None:
    """Print what API and page read of large tables."""
    app = os.environ["ROWCALL_APP"]
    os.environ["ROWCALL_APP"] = "rowcall_example"  # the screens show its job types
    catalogue.cache_clear()
    compare_sizes()
    os.environ["ROWCALL_APP"] = app
    catalogue.cache_clear()


@contextmanager
def bench_server() -> Iterator[Bench]:
    """Start a local server of its own, which waits for the disk as in production."""
    source = settings.read().postgres or "auto"
    with tempfile.TemporaryDirectory() as home, open_server(Path(home), source) as server:
        click.echo(f"PostgreSQL {server.version} ({server.source}), Python {platform.python_version()}")
        migrate(let_do_all(Path(home), server.url), lock_timeout=3)
        yield Bench(server.url)


def measure_costs(bench: Bench, runs: int) -> None:
    """Print CPU time and WAL of each run: medians, in turns."""
    found: dict[str, list[Cost]] = defaultdict(list)
    for _ in range(runs):
        for name, measured in costs(bench):
            found[name].append(measured())
    click.echo(f"\nfor each run, medians of {runs}{'':26}program us  server us  WAL bytes")
    for name, raw in found.items():
        program, server, wal = (statistics.median(values) for values in zip(*raw, strict=True))
        click.echo(f"  {name:50} {program:11,.1f} {server:10,.1f} {wal:10,.0f}")


def measure_speed(bench: Bench, runs: int) -> None:
    """Measure Rowcall beside bare SQL."""
    # In turns, so that a busy neighbour slows both.
    compare(
        f"drain {DRAINED} runs that do nothing, runs/s",
        runs,
        bench.bare_drain,
        one=lambda: bench.drain(1),
        two=lambda: bench.drain(2),
    )
    compare(
        f"enqueue {ONE_BY_ONE} one by one, rows/s",
        runs,
        lambda: bench.insert(ONE_BY_ONE, bare.insert_one_by_one),
        enqueue=lambda: bench.insert(ONE_BY_ONE, one_by_one),
    )
    compare(
        f"enqueue {AT_ONCE} in one call, rows/s",
        runs,
        lambda: bench.insert(AT_ONCE, bare.insert_many),
        enqueue_many=lambda: bench.insert(AT_ONCE, many),
        with_keys=lambda: bench.insert(AT_ONCE, many_with_keys),
    )
    compare(
        f"enqueue one by one, {ENQUEUERS} at the same time, commits/s",
        runs,
        lambda: bench.enqueuers(notifies=False),
        "no worker",
        none=bench.enqueuers,
        other=lambda: bench.enqueuers("--queues", "other"),
    )
    compare(
        f"the same beside a worker of this queue, which polls or sleeps, {ENQUEUERS} at the same time, commits/s",
        runs,
        lambda: bench.enqueuers("--queues", "default", notifies=False),
        "polling",
        sleeping=lambda: bench.enqueuers("--queues", "default"),
    )
    compare(
        f"drain {DRAINED} runs that do nothing beside what a claim does not take, runs/s",
        runs,
        lambda: bench.drain(1),
        "nothing",
        snapshot=bench.drain_under_a_snapshot,
        unserved=lambda: bench.drain(1, UNSERVED),
        queues=lambda: bench.drain(1, QUEUES),
    )
    compare(
        f"the same beside {WAITERS} requests that wait, or {FOLLOWERS} readers of events, runs/s",
        runs,
        lambda: bench.drain(1, AWAITED),
        "nobody",
        waiting=lambda: bench.drain(1, AWAITED, waiting),
        following=lambda: bench.drain(1, AWAITED, following),
    )
    compare(
        f"{effects.RUNS} runs with one effect each, runs/s",
        runs,
        lambda: effects.plain(bench),
        guarded=lambda: effects.guarded(bench),
        worker=lambda: effects.performed(bench),
    )
    click.echo(f"  sessions that one worker opens for them: {effects.sessions(bench)}")
    compare(
        f"POST /v1/runs beside a plain Flask route, {http.CLIENTS} clients, requests/s",
        runs,
        lambda: http.plain(bench),
        alike=lambda: http.alike(bench),
        rowcall=lambda: http.posted(bench),
    )
    compare_imports(runs)
    compare("idle pick-up, commit to the claimed row or the handler, ms", runs, bench.bare_pickup, worker=bench.pickup)


def measure_growth(bench: Bench, _runs: int) -> None:
    """Print how costs grow; fail if a run costs too much beside finished runs."""
    if failed := growth.show(bench):
        raise click.ClickException("beside finished runs, a run costs too much:\n" + "\n".join(failed))


# In this order, because growth may fail.
ON_A_SERVER = {
    "costs": measure_costs,
    "table": table.show,
    "speed": measure_speed,
    "growth": measure_growth,
}


def compare(title: str, runs: int, yardstick: Figure, against: str = "bare", **measured: Figure) -> None:
    """Measure the yardstick and the others in turns, and print their medians, ratios and raw runs."""
    figures: dict[str, list[float]] = {against: [], **{name: [] for name in measured}}
    for _ in range(runs):
        for name, figure in {against: yardstick, **measured}.items():
            figures[name].append(figure())
    click.echo(f"\n{title}")
    base = statistics.median(figures[against])
    width = max(map(len, figures))
    for name, raw in figures.items():
        median = statistics.median(raw)
        shown = ", ".join(f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in raw)
        click.echo(f"  {name:{width}} median {median:>10,.2f}   {median / base:5.2f} of {against}   runs: {shown}")


def compare_imports(runs: int) -> None:
    """Compare what imports cost a web process at its start, with a fresh process for each measurement."""
    compare(
        "import in a fresh process, CPU ms",
        runs,
        lambda: import_milliseconds(IMPORTS[0]),
        IMPORTS[0],
        **{statement: partial(import_milliseconds, statement) for statement in IMPORTS[1:]},
    )


def import_milliseconds(statement: str) -> float:
    """Return the CPU time of an import, without the interpreter's start."""
    script = f"import time; began = time.process_time(); {statement}; print((time.process_time() - began) * 1000)"
    return float(subprocess.check_output([sys.executable, "-c", script]))


if __name__ == "__main__":
    # SIGTERM ends it as Ctrl-C does, so that the server and its folder do not stay.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    as_the_shop()
    sys.path.append(str(APPS))
    main()
