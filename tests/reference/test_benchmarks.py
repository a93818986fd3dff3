"""docs/benchmarks.md and its charts show the figures of docs/benchmarks/peers.json, which the last run has written."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.bench.peers.report import BESIDE_FINISHED, ONE_PROCESS, write_report
from tests.support.processes import ROOT

DOCS = ROOT / "docs"

# One run of each measurement; the other systems have neither finished jobs in their table nor effects.
FIGURES = {
    (ONE_PROCESS, "jobs/s"): {"rowcall": 200, "plain-sql": 250, "pgqueuer": 100},
    (BESIDE_FINISHED, "jobs/s"): {"rowcall": 190, "plain-sql": 200},
    ("POST /v1/runs, 4 clients", "requests/s"): {"rowcall": 300, "plain-sql": 600},
    ("pick-up, median", "ms"): {"rowcall": 2, "plain-sql": 1, "pgqueuer": 4},
}
TABLE = """
| drain 100,000 with one process, jobs/s | 200 | 250 (0.80) | 100 (2.00) |
| drain 100,000 beside 1,000,000 finished, jobs/s | 190 | 200 (0.95) | – |
| speed beside 1,000,000 finished, relative to none | 0.95 | 0.80 | – |
| POST /v1/runs, 4 clients, requests/s | 300 | 600 (0.50) | – |
| pick-up, median, ms | 2.00 | 1.00 (0.50) | 4.00 (2.00) |
"""
RUNS = """
| drain 100,000 beside 1,000,000 finished, jobs/s | Rowcall | 190 |
| drain 100,000 beside 1,000,000 finished, jobs/s | plain SQL | 200 |
| POST /v1/runs, 4 clients, requests/s | Rowcall | 300 |
"""


def test_a_system_without_a_measurement_has_an_empty_cell_and_no_bar(tmp_path: Path) -> None:
    content = json.loads((DOCS / "benchmarks" / "peers.json").read_text())
    content["settings"] = {peer: {} for peer in ("rowcall", "plain-sql", "pgqueuer")}
    content["figures"] = [
        {"measure": measure, "unit": unit, "peer": peer, "runs": [figure]}
        for (measure, unit), by_peer in FIGURES.items()
        for peer, figure in by_peer.items()
    ]
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "peers.json").write_text(json.dumps(content))
    write_report(tmp_path)
    page = (tmp_path / "benchmarks.md").read_text()
    assert TABLE in page
    assert RUNS in page
    charts = {path.stem: path.read_text() for path in (tmp_path / "benchmarks").glob("*.svg")}
    assert set(re.findall(r"\(benchmarks/(.*)\.svg\)", page)) == set(charts)
    assert len(charts) == len(FIGURES)
    beside = charts["drain-100000-beside-1000000-finished"]
    assert "PgQueuer" not in beside
    assert "plain SQL" in beside
    assert "POST-v1-runs-4-clients" in charts


def test_the_page_and_its_charts_show_the_figures_of_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(DOCS / "benchmarks" / "peers.json", tmp_path / "benchmarks")
    write_report(tmp_path)
    assert (tmp_path / "benchmarks.md").read_text() == (DOCS / "benchmarks.md").read_text()
    charts = {path.name: path.read_text() for path in (tmp_path / "benchmarks").glob("*.svg")}
    assert charts == {path.name: path.read_text() for path in (DOCS / "benchmarks").glob("*.svg")}
    assert charts
