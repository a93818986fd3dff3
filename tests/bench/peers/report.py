"""Write docs/benchmarks.md and its charts from docs/benchmarks/peers.json."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

OURS = "rowcall"
PLAIN = "plain-sql"
NAMES = {OURS: "Rowcall", PLAIN: "plain SQL", "graphile-worker": "graphile-worker", "pgqueuer": "PgQueuer"}

ONE_PROCESS = "drain 100,000 with one process"
BESIDE_FINISHED = "drain 100,000 beside 1,000,000 finished"

# What is shown relative to another figure of the same system, too, and how that is called.
OF_ITSELF = {BESIDE_FINISHED: (ONE_PROCESS, "speed beside 1,000,000 finished, relative to none")}
MISSING = "–"

INTRODUCTION = """\
# Benchmarks

This page compares Rowcall with [graphile-worker](https://worker.graphile.org),
[PgQueuer](https://github.com/janbjorge/pgqueuer), and plain SQL on Rowcall's table. `make bench-peers` installs the
other systems, measures all of them in turns on one server, and writes this page. Compare ratios within one benchmark
session; the figures depend on the machine.
"""

MEDIANS = """\
## Medians

The number in parentheses is Rowcall's speed divided by that system's speed; for times, it is that system's time divided
by Rowcall's. So below 1, Rowcall is slower. A *job* is what Rowcall calls a run. A dash means that the system has no
such feature.
"""

BIASES = """\
## What to keep in mind

- We chose what is measured, and we know our own system best. The other systems have the fastest settings that we tried;
  others may be faster. Rowcall's worker has its default settings, except that it logs only errors.
- Each figure for enqueuing is for 3,000 jobs one by one, or for 20,000 jobs in all. Rowcall enqueues in Python,
  PgQueuer in Python with asyncio, and graphile-worker in Node.js, with `addJob` and `addJobs`.
- The handler does nothing, or has one effect that does nothing outside, so the figures show the cost of the queue,
  which is small compared with most jobs.
- graphile-worker and PgQueuer delete a job when it is done. Rowcall keeps its row, with result and times, as history.
- graphile-worker runs in Node.js; PgQueuer in Python on asyncpg, with asyncio handlers. Rowcall runs handlers in
  threads, on psycopg2.
- Programs and server share the machine, as in many small installations. Two processes and their server compete for its
  two cores: [What a run costs](performance.md#what-a-run-costs) says what Rowcall needs of them.
- Plain SQL is a program with one thread. To drain, it claims and finishes batches of 500 runs of one queue, without
  handlers, errors, retries or limits. A worker of Rowcall has two claiming threads, and so can be faster. To enqueue,
  plain SQL inserts rows; to pick up, it waits for the notification and claims the row.
- With keys, Rowcall also computes a fingerprint of each request, to refuse a repeated key with other content, and keeps
  the key when the run is done. Plain SQL inserts rows of the same size, with a constant fingerprint and with
  `ON CONFLICT DO NOTHING` on the same unique index. graphile-worker (`addJobs` with `jobKey`) would replace a waiting
  job with the same key, and PgQueuer (`dedupe_key` with `on_conflict="skip"`) would keep it; both forget the key when
  the job is done. No key was repeated.
- The finished runs were inserted before the others, and PostgreSQL had just vacuumed and analyzed the table, for each
  drain. The other systems keep no finished jobs in the table of their queue, so they have no such figure.
- With effects, plain SQL is a program with ten threads that commits as often for each run, but locks nothing and checks
  nothing, and claims all runs before its time begins. The time of Rowcall's worker includes the claims, but not its
  start. The other systems record no effects.
- For `POST /v1/runs`, plain SQL is a Flask route that inserts a row, without keys, permissions or schemas. Both have
  one process with four threads, and share the machine with their clients. Rowcall's API has two processes by default,
  accepts 50 requests a second for each key, and writes a line for each request; here it has no rate limit and writes
  only warnings. The other systems have no HTTP API.
- Pick-up is measured 200 times in each run of the benchmark, so its 99% is the second slowest.
- Pick-up is the time from the moment when the client knows that its commit succeeded to the first line of the handler.
  A slower client makes it look shorter, so here the clients are in Python for all systems. graphile-worker's client
  calls its SQL function `add_job`.
"""


def write_report(docs: Path) -> None:
    """Write the page and one chart for each measurement."""
    content = json.loads((docs / "benchmarks" / "peers.json").read_text())
    measures: dict[tuple[str, str], dict[str, Sequence[float]]] = {}
    for figure in content["figures"]:
        measures.setdefault((figure["measure"], figure["unit"]), {})[figure["peer"]] = figure["runs"]
    parts = [INTRODUCTION, _conditions(content), MEDIANS, _table(content, measures)]
    for (measure, unit), by_peer in measures.items():
        name = "-".join(measure.replace(",", "").replace("%", "").replace("/", " ").split())
        (docs / "benchmarks" / f"{name}.svg").write_text(_chart(f"{measure}, {unit}", by_peer))
        parts.append(f"![{measure}, {unit}](benchmarks/{name}.svg)\n")
    parts += ["## All runs\n", _runs(measures), BIASES]
    (docs / "benchmarks.md").write_text("\n".join(parts))


def _conditions(content: Mapping[str, Any]) -> str:
    machine, versions = content["machine"], content["versions"]
    named = ", ".join(f"{NAMES.get(name, name)} {version}" for name, version in versions.items())
    used = [f"{NAMES[name]} with {_listed(options)}" for name, options in content["settings"].items() if options]
    return (
        f"Measured on {content['date']}: {machine['cores']} cores ({machine['processor']}), {machine['system']}.\n"
        f"Versions: {named}.\nPostgreSQL has its default settings and waits for the disk at each commit.\n"
        f"Workers: {'; '.join(used)}; Rowcall with its defaults.\n"
    )


def _table(content: Mapping[str, Any], measures: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]) -> str:
    peers = [*content["settings"]]
    lines = [f"| | {' | '.join(NAMES[peer] for peer in peers)} |", f"|---|{'---|' * len(peers)}"]
    for (measure, unit), by_peer in measures.items():
        medians = {peer: statistics.median(runs) for peer, runs in by_peer.items()}
        lines.append(f"| {measure}, {unit} | {' | '.join(_cell(peer, medians, unit) for peer in peers)} |")
        if measure in OF_ITSELF:
            other, name = OF_ITSELF[measure]
            without = measures[other, unit]
            shares = [
                f"{medians[peer] / statistics.median(without[peer]):.2f}" if peer in medians else MISSING
                for peer in peers
            ]
            lines.append(f"| {name} | {' | '.join(shares)} |")
    return "\n".join([*lines, ""])


def _cell(peer: str, medians: Mapping[str, float], unit: str) -> str:
    """Return a median, and how many times as fast as another system Rowcall is."""
    if peer not in medians:
        return MISSING
    if peer == OURS:
        return _shown(medians[peer])
    # A higher rate is faster, and so is a shorter time.
    times = medians[OURS] / medians[peer] if unit.endswith("/s") else medians[peer] / medians[OURS]
    return f"{_shown(medians[peer])} ({times:.2f})"


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def _runs(measures: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]) -> str:
    lines = ["| measurement | system | runs |", "|---|---|---|"]
    for (measure, unit), by_peer in measures.items():
        for peer, runs in by_peer.items():
            lines.append(f"| {measure}, {unit} | {NAMES[peer]} | {', '.join(map(_shown, runs))} |")
    return "\n".join([*lines, ""])


def _shown(figure: float) -> str:
    return f"{figure:,.2f}" if figure < 100 else f"{figure:,.0f}"


def _chart(title: str, by_peer: Mapping[str, Sequence[float]]) -> str:
    """Return a bar for each median, and a dot for each run."""
    longest = max(max(runs) for runs in by_peer.values())
    height = 44 + 30 * len(by_peer)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}" role="img"'
        f' font-family="sans-serif" font-size="13"><title>{escape(title)}</title>'
        f'<rect width="720" height="{height}" fill="#fff"/>'
        f'<text x="12" y="24" font-weight="bold">{escape(title)}</text>'
    )
    parts = [head]
    for row, (peer, runs) in enumerate(by_peer.items()):
        y, median = 40 + 30 * row, statistics.median(runs)
        colour = {OURS: "#2563a8", PLAIN: "#bbbbbb"}.get(peer, "#8aa4bf")
        parts.append(
            f'<text x="12" y="{y + 15}">{escape(NAMES[peer])}</text>'
            f'<rect x="140" y="{y}" width="{460 * median / longest:.1f}" height="20" fill="{colour}"/>'
            f'<text x="{150 + 460 * max(runs) / longest:.1f}" y="{y + 15}">{_shown(median)}</text>'
        )
        parts += [f'<circle cx="{140 + 460 * run / longest:.1f}" cy="{y + 10}" r="3" fill="#222"/>' for run in runs]
    return "".join([*parts, "</svg>\n"])
