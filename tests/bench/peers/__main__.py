"""`make bench-peers`: install the other systems, measure all in turns, and write docs/benchmarks."""

from __future__ import annotations

import datetime
import json
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from rowcall.base import settings
from rowcall.local_postgres.server import open_server
from tests.bench.peers.install import install, versions
from tests.bench.peers.peer import PEERS, Peer
from tests.bench.peers.report import write_report
from tests.support.processes import ROOT
from tests.support.superuser import let_do_all

ONE_BY_ONE = 3_000
TOGETHER = 20_000
DRAINED = 100_000
PICKED_UP = 200
PAUSE_SECONDS = 0.05


class Measure(NamedTuple):
    """What is measured: its figures for one peer on a server, each with a name, and their unit."""

    names: tuple[str, ...]
    unit: str
    take: Callable[[Peer, str], list[float]]


def _pick_up(peer: Peer, server: str) -> list[float]:
    taken = peer.picked_up(server, PICKED_UP, PAUSE_SECONDS)
    return [taken[int(len(taken) * share)] for share in (0.5, 0.95, 0.99)]


MEASURES = {
    "single": Measure(
        ("enqueue one by one, a commit each",),
        "jobs/s",
        lambda peer, server: [peer.rate(server, "single", count=ONE_BY_ONE)],
    ),
    "bulk": Measure(
        ("enqueue 1,000 at once", "enqueue 20,000 at once"),
        "jobs/s",
        lambda peer, server: [peer.rate(server, "bulk", count=TOGETHER, chunk=chunk) for chunk in (1_000, TOGETHER)],
    ),
    "drain": Measure(
        ("drain 100,000 with one process", "drain 100,000 with two processes"),
        "jobs/s",
        lambda peer, server: [peer.drained(server, DRAINED, processes) for processes in (1, 2)],
    ),
    "pick-up": Measure(("pick-up, median", "pick-up, 95%", "pick-up, 99%"), "ms", _pick_up),
}


@click.command()
@click.option("--runs", default=3, show_default=True, help="Runs of each measurement.")
@click.option("--only", type=click.Choice([*MEASURES]), help="Take only this measurement, and write no page.")
def main(runs: int, only: str | None) -> None:
    """Measure Rowcall and the other systems in turns, so that a busy neighbour slows all of them."""
    install()
    source = settings.read().postgres or "auto"
    found: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as home, open_server(Path(home), source) as server:
        url = let_do_all(Path(home), server.url)
        for name in [only] if only else MEASURES:
            for _ in range(runs):
                for peer in PEERS:
                    _measure(MEASURES[name], peer, url, found)
        content = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": {"cores": os.cpu_count(), "processor": _processor(), "system": platform.system()},
            "versions": {"PostgreSQL": server.version, "Python": platform.python_version(), **versions()},
            "settings": {peer.name: dict(peer.worker) for peer in PEERS},
            "figures": [
                {"measure": measure, "unit": unit, "peer": peer, "runs": runs_of}
                for (measure, unit, peer), runs_of in found.items()
            ],
        }
    if only is None:
        folder = ROOT / "docs" / "benchmarks"
        folder.mkdir(exist_ok=True)
        (folder / "peers.json").write_text(json.dumps(content, indent=1) + "\n")
        write_report(ROOT / "docs")
        click.echo("docs/benchmarks.md and docs/benchmarks/ are written; look at them")


def _measure(measure: Measure, peer: Peer, url: str, found: dict[tuple[str, str, str], list[float]]) -> None:
    """Measure one peer once, and print the figures."""
    for name, figure in zip(measure.names, measure.take(peer, url), strict=True):
        found.setdefault((name, measure.unit, peer.name), []).append(round(figure, 2))
        click.echo(f"{name:36} {peer.name:16} {figure:12,.2f} {measure.unit}")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
