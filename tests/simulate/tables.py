"""The tables of the report: what is carried, which bound comes first, what to add then, how long runs wait, history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from tests.simulate.costs import Costs
from tests.simulate.events import Simulation
from tests.simulate.model import Bound, bounds, remedy
from tests.simulate.site import Site

HOSTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
CLUSTERS = (1, 2, 4, 16)
LENGTHS = {"runs of 1 ms": 0.001, "100 ms": 0.1, "10 s": 10.0}
NONE = "–"

TOGETHER = (1, 10, 100, 1_000)
SHARES = (0.01, 0.1, 0.5, 0.8, 0.9, 0.95)
WAITING_WORKERS, WAITING_RUNS = (1, 4, 10), 10_000
IDLE_WORKERS = (1, 10, 50, 100, 200)
RATES = (1, 10, 100, 1_000, 5_000)
KEPT_DAYS = 14
# Entries of a B-tree's page: leaves are nine tenths full, inner pages seven tenths.
LEAF_ENTRIES, INNER_ENTRIES = 366, 285
STEPS = 6


class Table(NamedTuple):
    """A table of the report, with how it was found."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Layout(NamedTuple):
    """How the workers of all clusters are counted: processes of each host, and clusters."""

    processes: int
    clusters: int


def carried(costs: Costs, site: Site, layout: Layout) -> Table:
    """Return what each number of hosts carries, as quotients."""
    found = {
        hosts: [_cell(first_bound(costs, site.changed(seconds=length), layout, hosts)) for length in LENGTHS.values()]
        for hosts in HOSTS
    }
    named = f"{layout.clusters} cluster{'s' * (layout.clusters > 1)} of {site.cores} cores"
    title = f"{named} and {site.max_connections:,} connections: runs a second (and the first bound)"
    return Table(title, ["worker hosts", *LENGTHS], [*_merged(found)])


def _merged(found: Mapping[int, Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield one row for neighbouring numbers of hosts with the same cells."""
    for cells, group in groupby(found, key=found.__getitem__):
        numbers = [*group]
        named = f"{numbers[0]:,} to {numbers[-1]:,}" if len(numbers) > 1 else f"{numbers[0]:,}"
        yield [named, *cells]


def together(costs: Costs, site: Site) -> Table:
    """Return what one worker host and ten carry of quick runs, by the number of runs that are enqueued together."""
    rows = [
        [
            f"{at_once:,}",
            *(_cell(first_bound(costs, _quick(site, at_once), Layout(1, 1), hosts)) for hosts in (1, 2, 10)),
        ]
        for at_once in TOGETHER
    ]
    return Table(
        "runs of 1 ms, enqueued together: runs a second (and the first bound)",
        ["runs at once", "1 host", "2 hosts", "10 hosts"],
        rows,
    )


def _quick(site: Site, at_once: int) -> Site:
    return site.changed(seconds=LENGTHS["runs of 1 ms"], at_once=at_once)


def first_bound(costs: Costs, site: Site, layout: Layout, hosts: int) -> Bound | None:
    """Return what all clusters carry together, and the first bound of those with most workers."""
    each, more = divmod(hosts * layout.processes, layout.clusters)
    if not each:
        return None
    fewer = bounds(costs, site.changed(workers=each))[0]
    most = bounds(costs, site.changed(workers=each + 1))[0] if more else fewer
    return Bound(most.name, more * most.runs_per_second + (layout.clusters - more) * fewer.runs_per_second)


def _cell(bound: Bound | None) -> str:
    return f"{figure(bound.runs_per_second)}/s ({bound.name})" if bound else NONE


def figure(rate: float) -> str:
    """Return a rate with three digits."""
    if rate < 10:
        return f"{rate:.1f}"
    digits = 2 - math.floor(math.log10(rate))
    return f"{round(rate, min(digits, 0)):,.0f}"


def ladder(costs: Costs, site: Site, hosts: Sequence[int] = (10, 100, 1_000)) -> Table:
    """Return which bound comes first, what to add then, and which bound comes next."""
    rows = []
    for number in hosts:
        current = site.changed(workers=number)
        for _ in range(STEPS):
            bound = bounds(costs, current)[0]
            added = remedy(bound.name, current)
            rows.append([f"{number:,}", figure(bound.runs_per_second), bound.name, added.advice])
            current = added.changed(current)
    return Table(
        f"one cluster, runs of {site.seconds * 1000:g} ms: what to add, step by step",
        ["worker hosts", "runs/s", "first bound", "then add"],
        rows,
    )


def waits(costs: Costs, site: Site) -> Table:
    """Simulate how long runs wait for their handler, by the share of what the cluster carries."""
    rows = []
    for number in WAITING_WORKERS:
        current = site.changed(workers=number)
        most = bounds(costs, current)[0].runs_per_second
        for share in SHARES:
            seconds = min(max(WAITING_RUNS / most / share, 20.0), 120.0)
            found = Simulation(costs, current, most * share, seconds).run()
            rows.append([f"{number:,}", f"{share:.0%}", figure(most * share), *_waited(found)])
    head = ["workers", "load", "runs/s", "median ms", "99% ms"]
    return Table(f"simulated: how long runs of {site.seconds * 1000:g} ms wait", head, rows)


def _waited(found: Simulation) -> Iterator[str]:
    waited = found.waits_after(found.seconds * 0.2)
    for share in (0.5, 0.99):
        yield f"{waited[int(len(waited) * share)] * 1000:,.1f}" if waited else NONE


def asleep(costs: Costs, site: Site, rate: float = 5.0, seconds: float = 12.0) -> Table:
    """Simulate what workers cost that have next to nothing to do, with and without notifications."""
    rows = []
    for number in IDLE_WORKERS:
        current = site.changed(workers=number, max_connections=10_000)
        cells = [f"{number:,}", f"{number * costs.idle.server_us / 1e4:,.1f}%"]
        for pooled in (False, True):
            found = Simulation(costs, current.changed(pooled=pooled), rate, seconds).run()
            used = f"{found.server_us / seconds / 1e4:,.1f}%"
            cells += [used, next(_waited(found))]
        rows.append(cells)
    head = ["workers", "no runs: CPU", "woken: CPU", "woken: median ms", "polling: CPU", "polling: median ms"]
    title = f"simulated: workers that wait for {rate:g} runs a second; CPU of the server, where 100% is one core"
    return Table(title, head, rows)


def disturbances(costs: Costs, site: Site, workers: int = 10) -> Table:
    """Simulate a burst, and the loss of a host, at half of what the cluster carries."""
    current = site.changed(workers=workers)
    rate = bounds(costs, current)[0].runs_per_second / 2
    calm = Simulation(costs, current, rate, 30.0).run()
    burst = Simulation(costs, current, rate, 60.0)
    burst.burst(10.0, int(rate * 20))
    lost = Simulation(costs, current, rate, 160.0)
    lost.lose(10.0, 1, 120.0)
    rows = [
        _disturbed("nothing happens", calm),
        _disturbed(f"{int(rate * 20):,} runs become due at once", burst.run()),
        _disturbed("one worker vanishes; its leases of 120 s end", lost.run()),
    ]
    head = ["what happens", "median ms", "99% ms", "longest s", "waited over 1 s"]
    return Table(f"simulated: {workers} workers at half load, {figure(rate)} runs/s", head, rows)


def _disturbed(name: str, found: Simulation) -> list[str]:
    waited = found.waits_after(0.0)
    late = sum(1 for seconds in waited if seconds > 1)
    return [
        name,
        *(f"{waited[int(len(waited) * share)] * 1000:,.1f}" for share in (0.5, 0.99)),
        f"{waited[-1]:,.1f}",
        f"{late:,}",
    ]


def history(costs: Costs) -> Table:
    """Return how the finished history grows: rows, bytes, the depth of its index, and how long a base backup reads."""
    each = costs.table_bytes + costs.index_bytes
    rows = []
    for rate in RATES:
        day = rate * 86_400
        kept = day * KEPT_DAYS
        rows.append(
            [
                f"{rate:,}",
                f"{day / 1e6:,.1f}",
                f"{day * each / 1e9:,.1f}",
                f"{kept / 1e6:,.0f}",
                f"{kept * each / 1e9:,.0f}",
                f"{depth(kept)}",
                f"{kept * each / costs.bytes_per_second / 60:,.0f}",
            ]
        )
    head = [
        "runs/s, all day",
        "million rows a day",
        "GB a day",
        "million kept",
        "GB kept",
        "index levels",
        "backup, min",
    ]
    return Table(f"finished runs, kept for {KEPT_DAYS} days, {each:,.0f} bytes each", head, rows)


def depth(rows: float) -> int:
    """Return how many pages a look-up by primary key reads in the index."""
    return 1 + max(math.ceil(math.log(max(rows, 1) / LEAF_ENTRIES, INNER_ENTRIES)), 0)
