"""The model's predictions for real workers, from docs/benchmarks/costs.json: commits and WAL, not time.

The CPU time of another machine would differ, so only `make simulate SIMULATE_ARGS=--check` compares it.
"""

from __future__ import annotations

import pytest

from tests.bench.measures import Bench
from tests.bench.scaling.measure import FILE
from tests.simulate.check import drained, loaded
from tests.simulate.costs import Costs
from tests.support.processes import ROOT


@pytest.fixture
def bench(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench on a database of its own; its workers import the app of the benchmark."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Bench(fresh_url)


def test_two_workers_write_as_much_wal_for_each_waiting_run_as_predicted(bench: Bench) -> None:
    checked = drained(Costs.read(FILE), bench, 2)
    # Measured: 0.91 to 0.99.
    assert checked.predicted.wal / checked.measured.wal == pytest.approx(1.0, abs=0.25)


def test_a_worker_commits_and_writes_as_much_as_predicted_for_runs_that_come_one_by_one(bench: Bench) -> None:
    checked = loaded(Costs.read(FILE), bench, 1, 12.0, 0.001, seconds=3.0)
    # Measured: 0.74 to 1.0, and 1.05 to 1.17; so seldom that the worker falls asleep between two runs.
    assert checked.predicted.commits / checked.measured.commits == pytest.approx(0.9, abs=0.45)
    assert checked.predicted.wal / checked.measured.wal == pytest.approx(1.1, abs=0.35)
