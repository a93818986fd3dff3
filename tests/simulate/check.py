"""Predictions beside real runs on this machine: up to 16 workers far below what they could do, and up to 4 that drain.

Server's CPU time, commits and WAL for each run depend little on other load; no time that passes is compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click

from rowcall.base.database import fetch_value
from rowcall.local_postgres.server import open_server
from rowcall_migrations.migrate import migrate
from tests.bench.costs import LIVE
from tests.bench.measures import Bench
from tests.bench.scaling import workers
from tests.bench.scaling.measure import OPTIONS
from tests.bench.scaling.timed_app.job_types import TIMED
from tests.bench.scaling.usage import Usage, usage
from tests.simulate.costs import Costs
from tests.simulate.events import Simulation
from tests.simulate.model import demand
from tests.simulate.site import Site
from tests.support.processes import wait_until
from tests.support.superuser import let_do_all

# Workers, runs a second, and how long a run takes.
LOADS = ((1, 10.0, 0.001), (1, 50.0, 0.1), (2, 50.0, 0.001), (4, 50.0, 0.1), (4, 150.0, 0.001), (16, 5.0, 0.001))
SECONDS = 6.0
DRAINS = (1, 2, 4)
DRAINED = 20_000


class Checked(NamedTuple):
    """What one run took of the server, as predicted and as measured: microseconds, commits, bytes of WAL."""

    name: str
    predicted: Usage
    measured: Usage


def checks(costs: Costs, source: str) -> Iterator[Checked]:
    """Yield each comparison as soon as it is made."""
    with tempfile.TemporaryDirectory() as home, open_server(Path(home), source, options=OPTIONS) as server:
        migrate(let_do_all(Path(home), server.url), lock_timeout=3)
        bench = Bench(server.url)
        for number, rate, work in LOADS:
            yield loaded(costs, bench, number, rate, work)
        for number in DRAINS:
            yield drained(costs, bench, number)


def loaded(costs: Costs, bench: Bench, number: int, rate: float, work: float, seconds: float = SECONDS) -> Checked:
    """Compare a load that leaves workers idle most of the time."""
    real = workers.loaded(bench, number, rate, seconds, work)
    runs = int(rate * seconds)
    site = Site.measured(costs, number, work)
    found = Simulation(costs, site, real.rate, real.seconds, even=True, until=runs / real.rate).run()
    predicted = Usage(found.server_us - found.clients_us, 0.0, found.wal, found.commits)
    name = f"{number} worker{'s' * (number > 1)}, {rate:g}/s of {work * 1000:g} ms"
    return Checked(name, predicted.times(1 / max(found.enqueued, 1)), real.used.times(1 / runs))


def drained(costs: Costs, bench: Bench, number: int) -> Checked:
    """Compare a backlog of quick runs, whose number of batches depends on the moment: its commits are not compared."""
    with workers.working(bench, number) as pids, closing(bench.connect()) as connection:
        TIMED.enqueue_many(connection, [{"seconds": 0.0}] * 100)  # so that everything is loaded
        wait_until(lambda: not fetch_value(connection, LIVE), "the first runs have finished")
        before = usage(connection, pids)
        TIMED.enqueue_many(connection, [{"seconds": 0.0}] * DRAINED)
        wait_until(lambda: not fetch_value(connection, LIVE), "every run has finished")
        measured = usage(connection, pids).minus(before).times(1 / DRAINED)
    site = Site.measured(costs, number, 0.001).changed(at_once=1000)
    needed = demand(costs, site, DRAINED)
    claims = needed.server_us["claims"] + needed.server_us["contention"]
    predicted = Usage(claims / DRAINED, 0.0, needed.wal / DRAINED - costs.vacuum_wal, 0.0)
    return Checked(f"{number} worker{'s' * (number > 1)}, {DRAINED:,} waiting runs", predicted, measured)


HEAD = f"{'for each run: predicted / measured':30}{'server us':>24}{'commits':>20}{'bytes of WAL':>24}"


def line(checked: Checked) -> str:
    """Return one comparison for a terminal."""
    return f"{checked.name:30}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells(checked), (24, 20, 24), strict=True)
    )


def cells(checked: Checked) -> list[str]:
    """Return what was predicted and measured of the server's CPU, commits and WAL."""
    return [said(getattr(checked.predicted, name), getattr(checked.measured, name)) for name in COMPARED]


COMPARED = ("server_us", "commits", "wal")


def said(predicted: float, measured: float) -> str:
    """Return two figures and their ratio."""
    if not predicted:
        return "-"
    digits = 1 if measured < 100 else 0
    return f"{predicted:,.{digits}f} / {measured:,.{digits}f} ({predicted / measured:.2f})"


def show(costs: Costs, source: str) -> list[Checked]:
    """Print all comparisons, and return them."""
    click.echo(HEAD)
    found = []
    for checked in checks(costs, source):
        click.echo(line(checked))
        found.append(checked)
    return found
