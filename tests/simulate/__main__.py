"""`make simulate`: print what a number of worker hosts and clusters carry, from measured costs."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import click

from rowcall.base import settings
from tests.bench.measures import as_the_shop
from tests.bench.scaling.measure import FILE, write_costs
from tests.simulate import check, page, tables
from tests.simulate.costs import Costs
from tests.simulate.model import connected
from tests.simulate.site import Site
from tests.simulate.tables import Layout, Table
from tests.support.processes import APPS


class Amount(click.FloatRange):
    """A number within a range; neither infinite nor not a number, which every range accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what cannot be computed with."""
        amount = float(super().convert(value, param, ctx))
        if not math.isfinite(amount):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return amount


@click.command()
@click.option("--cores", type=click.IntRange(1), help="Cores of each PostgreSQL server.")
@click.option("--flush-ms", type=Amount(0), help="How long a commit waits for the disk.")
@click.option("--wal-mb", type=Amount(0, min_open=True), help="MB of WAL a second that the disk takes.")
@click.option("--standby-ms", type=Amount(0), help="How much longer a commit waits for a synchronous standby.")
@click.option("--standby-mb", type=Amount(0, min_open=True), help="MB a second of the network to the standby.")
@click.option("--max-connections", type=click.IntRange(20), help="PostgreSQL's max_connections.")
@click.option(
    "--processes", type=click.IntRange(1), default=1, show_default=True, help="Worker processes of each host."
)
@click.option("--threads", type=click.IntRange(1), help="Runs of each process at a time: ROWCALL_CONCURRENCY.")
@click.option("--clients", type=click.IntRange(1), help="Sessions that enqueue, in each cluster.")
@click.option("--at-once", type=click.IntRange(1), help="Runs of each transaction that enqueues.")
@click.option("--pooled", is_flag=True, help="Put PgBouncer in front of the workers.")
@click.option("--quick", is_flag=True, help="Leave out what is simulated, which takes half a minute.")
@click.option(
    "--check", "checking", is_flag=True, help="Compare the predictions with real runs on this machine, for two minutes."
)
@click.option("--renew", is_flag=True, help="Measure all costs, check the predictions, and write docs/scaling.md.")
def main(processes: int, pooled: bool, quick: bool, checking: bool, renew: bool, **sizes: float | None) -> None:
    """Print what 1 to 1,000 worker hosts and 1 to 16 clusters carry, and which bound comes first.

    Without options, each server is like the one on which the costs were measured, with PostgreSQL's and Rowcall's
    defaults.
    """
    source = settings.read().postgres or "auto"
    if renew:
        write_costs(source)
    if not FILE.exists():
        raise click.ClickException(f"{FILE} is missing: measure the costs with --renew")
    costs = Costs.read(FILE)
    if renew:
        page.keep(check.show(costs, source))
        page.write(costs)
        click.echo("docs/scaling.md and its charts are written; look at them")
    elif checking:
        check.show(costs, source)
    else:
        site = resized(Site.measured(costs), **sizes).changed(pooled=pooled)
        if not connected(site):
            raise click.UsageError("no connection is left for a worker: raise --max-connections, or lower --clients")
        click.echo(f"costs measured on {costs.date}: {costs.machine['processor']}, {costs.machine['cores']} cores")
        for table in report(costs, site, processes, quick):
            click.echo("\n" + "\n".join(shown(table)))


def resized(site: Site, **sizes: float | None) -> Site:
    """Return the site with the given sizes; None leaves one as it is."""
    given = {name: value for name, value in sizes.items() if value is not None}
    flush_us = given.pop("flush_ms", site.flush_us / 1e3) * 1e3 + given.pop("standby_ms", 0.0) * 1e3
    if "wal_mb" in given:
        given["wal_bytes_per_second"] = given.pop("wal_mb") * 1e6
    if "standby_mb" in given:
        given["standby_bytes_per_second"] = given.pop("standby_mb") * 1e6
    return site.changed(flush_us=flush_us, **given)


def report(costs: Costs, site: Site, processes: int, quick: bool) -> Iterator[Table]:
    """Yield all tables; the simulated ones take some seconds each, and `quick` leaves them out."""
    for clusters in tables.CLUSTERS:
        yield tables.carried(costs, site, Layout(processes, clusters))
    yield tables.together(costs, site)
    yield tables.ladder(costs, site)
    yield tables.history(costs)
    if quick:
        return
    yield tables.waits(costs, site)
    yield tables.asleep(costs, site)
    yield tables.disturbances(costs, site)


def shown(table: Table) -> Iterator[str]:
    """Yield the lines of a table for a terminal; numbers are on the right, texts on the left."""
    yield table.title
    columns = [*zip(table.head, *table.rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    for row in (table.head, *table.rows):
        cells = (
            cell.ljust(width) if cell[:1].isalpha() else cell.rjust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        yield ("  " + "  ".join(cells)).rstrip()


if __name__ == "__main__":
    # SIGTERM ends it as Ctrl-C does, so that the server and its folder do not stay.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("ROWCALL_LOG_LEVEL", "error")
    as_the_shop()
    sys.path.append(str(APPS))
    main()
