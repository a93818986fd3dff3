"""docs/scaling.md shows the figures of docs/benchmarks/costs.json and predictions.json."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench.scaling.measure import FILE
from tests.simulate import __main__ as program
from tests.simulate import page
from tests.simulate.costs import Costs
from tests.simulate.page import DOCS, MARKED


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
    assert "connections" in "".join(line for line in default if line.startswith("           100"))
    assert "standby network" in "".join(line for line in larger if line.startswith("           100"))


@pytest.mark.parametrize("options", [("--cores", "0"), ("--flush-ms", "nan"), ("--clients", "90", "--quick")])
def test_a_size_with_which_nothing_runs_is_refused(options: tuple[str, ...]) -> None:
    outcome = CliRunner().invoke(program.main, options)
    assert outcome.exit_code == 2
    assert options[0] in outcome.output
