"""Write the figures of docs/scaling.md between its markers, and its charts, from the costs and the last check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.scaling.usage import Usage
from tests.simulate import tables
from tests.simulate.charts import Points, lines
from tests.simulate.check import Checked, cells
from tests.simulate.costs import Costs
from tests.simulate.site import Site
from tests.simulate.tables import CLUSTERS, HOSTS, Layout, Table, first_bound
from tests.support.processes import ROOT

DOCS = ROOT / "docs"
MARKED = re.compile(r"(<!-- written by make simulate: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Beside the machine on which the costs were measured: a usual large server.
LARGE = {"cores": 16, "max_connections": 2_000}


def write(costs: Costs, docs: Path = DOCS) -> None:
    """Write the page's figures and its charts."""
    site = Site.measured(costs)
    found = {
        "waits": tables.waits(costs, site),
        "asleep": tables.asleep(costs, site),
        "disturbances": tables.disturbances(costs, site),
    }
    simulated = {name: markdown(table) for name, table in found.items()}
    fill(docs / "scaling.md", {**computed(costs), **measured(costs, docs), **simulated})
    (docs / "scaling").mkdir(exist_ok=True)
    for name, chart in charts(costs, found["waits"], found["asleep"]).items():
        (docs / "scaling" / f"{name}.svg").write_text(chart)


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Write these parts between the page's markers; the others stay."""
    page.write_text(
        MARKED.sub(
            lambda part: f"{part[1]}\n{parts[part[2]]}\n{part[3]}" if part[2] in parts else part[0], page.read_text()
        )
    )


def keep(checked: Sequence[Checked], docs: Path = DOCS) -> None:
    """Keep the comparisons of the last check beside the costs."""
    content = [
        {"name": one.name, "predicted": one.predicted._asdict(), "measured": one.measured._asdict()} for one in checked
    ]
    (docs / "benchmarks" / "predictions.json").write_text(json.dumps(content, indent=1) + "\n")


def computed(costs: Costs) -> Mapping[str, str]:
    """Return the tables of quotients."""
    site = Site.measured(costs)
    small = [tables.carried(costs, site, Layout(1, clusters)) for clusters in CLUSTERS]
    large = [tables.carried(costs, site.changed(**LARGE), Layout(1, clusters)) for clusters in (1, 16)]
    return {
        "carried": "\n".join(map(markdown, small)),
        "larger": "\n".join(map(markdown, large)),
        "together": markdown(tables.together(costs, site)),
        "ladder": markdown(tables.ladder(costs, site)),
        "history": markdown(tables.history(costs)),
    }


def measured(costs: Costs, docs: Path = DOCS) -> Mapping[str, str]:
    """Return what was measured, and the comparisons of the last check."""
    machine = costs.machine
    kept = json.loads((docs / "benchmarks" / "predictions.json").read_text())
    checked = [Checked(one["name"], Usage(**one["predicted"]), Usage(**one["measured"])) for one in kept]
    rows = [[one.name, *cells(one)] for one in checked]
    head = ["for each run: predicted / measured (ratio)", "server µs", "commits", "bytes of WAL"]
    return {
        "machine": f"Costs measured on {costs.date}: {machine['cores']} cores ({machine['processor']}), PostgreSQL"
        f" {machine['postgresql']}.\n",
        "costs": markdown(Table("", ["what", "cost"], [*_costs(costs)])),
        "check": markdown(Table("", head, rows)),
    }


def _costs(costs: Costs) -> Iterator[Sequence[str]]:
    """Yield the most important measured costs."""
    for size in (1, 10, 100, 500):
        each, wal = costs.exchange_us(size) / size, costs.exchange_wal(size) / size
        yield f"end and claim a run, {size} at once", f"{each:,.0f} µs of the server, {wal:,.0f} bytes of WAL"
    yield "the same with pauses of 5 ms, one run", f"{costs.paced_us(1):,.0f} µs"
    yield "a look that finds nothing, with pauses", f"{costs.paced_us(0):,.0f} µs"
    for size in (1, 1000):
        yield (
            f"enqueue a run, {size:,} at once",
            f"{costs.enqueue_us(size) / size:,.0f} µs, {costs.enqueue_wal(size) / size:,.0f} bytes",
        )
    yield "an idle worker, each second", f"{costs.idle.server_us / 1000:,.1f} ms, {costs.idle.commits:.0f} commits"
    for count in (1, 10, 100, 500):
        yield (
            f"a notification to {count} listener{'s' * (count > 1)}",
            f"{costs.sender_us(count):,.0f} µs of the sender, {costs.listener_us(count):,.0f} of each listener",
        )
    for count in (2, 4, 8, 16, 32, 64):
        yield (
            f"claims of 10 runs by {count} at the same time",
            f"{costs.contention(count):.2f} times as much for each run",
        )
    yield (
        "an exchange of 10 runs through PgBouncer",
        f"{costs.pooled:.1f} times as much, and {costs.pooler_us:,.0f} µs of PgBouncer",
    )
    yield "an exchange beside 500 idle sessions", f"{costs.beside_500_idle:.2f} times as much"
    yield "an idle session", f"{costs.idle_bytes / 1e6:.1f} MB"
    for count in (1, 100):
        yield f"a heartbeat with {count} lease{'s' * (count > 1)}", f"{costs.heartbeat_us(count):,.0f} µs"
    yield "vacuum, for each run", f"{costs.vacuum_us:.1f} µs, {costs.vacuum_wal:,.0f} bytes"
    yield "a finished run", f"{costs.table_bytes:,.0f} bytes of the table, {costs.index_bytes:,.0f} of its indexes"
    yield "the disk", f"{costs.flush_us / 1000:,.1f} ms for a commit, {costs.bytes_per_second / 1e6:,.0f} MB/s"


def charts(costs: Costs, waits: Table, asleep: Table) -> Mapping[str, str]:
    """Return the page's charts by name."""
    large = Site.measured(costs).changed(**LARGE)
    by_clusters = {
        f"{clusters} cluster{'s' * (clusters > 1)}": _carried(costs, large, Layout(1, clusters))
        for clusters in CLUSTERS
    }
    columns = {"without runs": 1, "woken": 2, "polling": 4}
    used = {
        name: [(_number(row[0]), _number(row[column]) / 100) for row in asleep.rows] for name, column in columns.items()
    }
    by_workers: dict[str, list[tuple[float, float]]] = {}
    for workers, load, *_, slowest in waits.rows:
        name = f"{workers} worker{'s' * (workers != '1')}"
        by_workers.setdefault(name, []).append((_number(load), _number(slowest)))
    return {
        "hosts-and-clusters": lines(
            "runs of 100 ms a second, 16 cores for each cluster", "worker hosts", by_clusters, (True, True)
        ),
        "load-and-waits": lines("how long 1% of the runs wait at least, ms", "load, %", by_workers, (False, True)),
        "workers-that-wait": lines(
            "cores of the server for workers that wait", "worker processes", used, (False, False)
        ),
    }


def _number(cell: str) -> float:
    return float(cell.replace(",", "").rstrip("%"))


def _carried(costs: Costs, site: Site, layout: Layout) -> Points:
    found = [(float(hosts), first_bound(costs, site, layout, hosts)) for hosts in HOSTS]
    return [(hosts, bound.runs_per_second) for hosts, bound in found if bound is not None]


def markdown(table: Table) -> str:
    """Return a table for the page."""
    head = [f"| {' | '.join(table.head)} |", f"|{'---|' * len(table.head)}"]
    rows = [f"| {' | '.join(row)} |" for row in table.rows]
    title = [f"{table.title[:1].upper()}{table.title[1:]}:\n"] if table.title else []
    return "\n".join([*title, *head, *rows, ""])
