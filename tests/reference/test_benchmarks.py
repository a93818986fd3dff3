"""docs/benchmarks.md and its charts are those of the last run, whose figures are in docs/benchmarks/peers.json."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bench.peers.report import write_report
from tests.support.processes import ROOT

DOCS = ROOT / "docs"


def test_the_page_and_its_charts_show_the_figures_of_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(DOCS / "benchmarks" / "peers.json", tmp_path / "benchmarks")
    write_report(tmp_path)
    assert (tmp_path / "benchmarks.md").read_text() == (DOCS / "benchmarks.md").read_text()
    charts = {path.name: path.read_text() for path in (tmp_path / "benchmarks").glob("*.svg")}
    assert charts == {path.name: path.read_text() for path in (DOCS / "benchmarks").glob("*.svg")}
    assert charts
