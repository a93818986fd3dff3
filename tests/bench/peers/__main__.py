"""`make bench-peers`: install the other systems, measure all in turns, and write docs/benchmarks."""

from __future__ import annotations

import datetime
import json
import os
import platform
import tempfile
from pathlib import Path

import click

from rowcall.base import settings
from rowcall.local_postgres.server import open_server
from tests.bench.measures import as_the_shop, processor
from tests.bench.peers.install import install, versions
from tests.bench.peers.measures import MEASURES, Measure
from tests.bench.peers.peer import PEERS, Peer
from tests.bench.peers.report import write_report
from tests.support.processes import ROOT
from tests.support.superuser import let_do_all


@click.command()
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Runs of each measurement.")
@click.option("--only", type=click.Choice([*MEASURES]), help="Take only this measurement, and write no page.")
def main(runs: int, only: str | None) -> None:
    """Measure Rowcall and the other systems in turns, so that a busy neighbour slows all of them."""
    install()
    as_the_shop()
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
            "machine": {"cores": os.cpu_count(), "processor": processor(), "system": platform.system()},
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
    for name, figure in measure.take(peer, url).items():
        found.setdefault((name, measure.unit, peer.name), []).append(round(figure, 2))
        click.echo(f"{name:42} {peer.name:16} {figure:12,.2f} {measure.unit}")


if __name__ == "__main__":
    main()
