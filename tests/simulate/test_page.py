"""docs/scaling.md shows the figures of docs/benchmarks/costs.json and predictions.json."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench.scaling.measure import FILE
from tests.simulate import __main__ as program
from tests.simulate import page, tables
from tests.simulate.costs import Costs
from tests.simulate.page import DOCS, MARKED
from tests.simulate.site import Site


def test_the_page_shows_what_was_measured_and_what_follows_from_it(tmp_path: Path) -> None:
    costs = Costs.read(FILE)
    copy = tmp_path / "scaling.md"
    shutil.copy(DOCS / "scaling.md", copy)
    page.fill(copy, {**page.computed(costs), **page.measured(costs)})
    assert copy.read_text() == (DOCS / "scaling.md").read_text()


def test_every_part_of_the_page_is_written_and_every_chart_is_there() -> None:
    text = (DOCS / "scaling.md").read_text()
    parts = {part[2]: part[0] for part in MARKED.finditer(text)}
    assert set(parts) == {
        *(
            "machine",
            "carried",
            "larger",
            "together",
            "ladder",
            "waits",
            "disturbances",
            "asleep",
            "history",
            "costs",
            "check",
        )
    }
    assert [name for name, part in parts.items() if len(part.splitlines()) < 4] == []
    assert set(re.findall(r"\(scaling/(.*)\.svg\)", text)) == {chart.stem for chart in (DOCS / "scaling").iterdir()}


def test_the_report_fits_a_terminal_and_follows_the_options() -> None:
    def lines(*options: str) -> list[str]:
        outcome = CliRunner().invoke(program.main, ["--quick", *options])
        assert outcome.exit_code == 0, outcome.output
        return outcome.output.splitlines()

    default = lines()
    assert max(map(len, default)) <= 100
    larger = lines("--cores", "64", "--max-connections", "4000", "--flush-ms", "0.1", "--standby-mb", "0.5")
    told = [" ".join(line.split()) for line in default]
    costs = Costs.read(FILE)
    last = tables.carried(costs, Site.measured(costs), tables.Layout(1, 1)).rows[-1]
    assert " ".join(last) in told
    assert last[0].endswith(" to 1,000")
    assert "/s (standby network)" in "".join(larger)


def test_rows_of_a_table_of_rates_differ_and_each_rate_names_its_unit() -> None:
    costs = Costs.read(FILE)
    for clusters in tables.CLUSTERS:
        table = tables.carried(costs, Site.measured(costs), tables.Layout(1, clusters))
        cells = [tuple(row[1:]) for row in table.rows]
        assert all(one != other for one, other in pairwise(cells))
        assert [cell for row in cells for cell in row if not re.fullmatch(r"–|[\d,.]+/s \([a-zA-Z ]+\)", cell)] == []


def test_each_step_of_the_ladder_names_its_hosts_and_how_many_runs_to_enqueue_together() -> None:
    costs = Costs.read(FILE)
    slow_disk = Site.measured(costs).changed(flush_us=10_000.0, cores=64, max_connections=4000)
    steps = tables.ladder(costs, slow_disk).rows
    assert {row[0] for row in steps} == {"10", "100", "1,000"}
    together = [row[3] for row in steps if row[0] == "1,000" and row[2] == "disk flushes"]
    assert together[:2] == ["enqueue_many, 10 at once", "enqueue_many, 100 at once"]


@pytest.mark.parametrize("options", [("--cores", "0"), ("--flush-ms", "nan"), ("--clients", "90", "--quick")])
def test_a_size_with_which_nothing_runs_is_refused(options: tuple[str, ...]) -> None:
    outcome = CliRunner().invoke(program.main, options)
    assert outcome.exit_code == 2
    assert options[0] in outcome.output
