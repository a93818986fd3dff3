"""The model's predictions of WAL for real workers, from docs/benchmarks/costs.json.

The CPU time of another machine would differ, and how often an idle worker looks depends on the moment, so only
`make simulate SIMULATE_ARGS=--check` compares these.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.local_postgres.server import open_server
from rowcall_migrations.migrate import migrate
from tests.bench.measures import Bench
from tests.bench.scaling.measure import FILE, OPTIONS
from tests.conftest import SOURCE
from tests.simulate.check import drained, loaded
from tests.simulate.costs import Costs
from tests.support.processes import ROOT
from tests.support.superuser import let_do_all


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Yield a bench on a server of its own, whose WAL is only of this test; workers import the app of the benchmark."""
    home = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as environment, open_server(home, SOURCE, options=OPTIONS) as server:
        environment.setenv("PYTHONPATH", str(ROOT))
        migrate(let_do_all(home, server.url), lock_timeout=3)
        yield Bench(server.url)


def test_two_workers_write_as_much_wal_for_each_waiting_run_as_predicted(bench: Bench) -> None:
    checked = drained(Costs.read(FILE), bench, 2)
    # Measured: 0.91 to 0.99.
    assert checked.predicted.wal / checked.measured.wal == pytest.approx(1.0, abs=0.25)


def test_a_worker_writes_as_much_as_predicted_for_runs_that_come_one_by_one(bench: Bench) -> None:
    checked = loaded(Costs.read(FILE), bench, 1, 12.0, 0.001, seconds=3.0)
    # Measured: 1.05 to 1.17.
    assert checked.predicted.wal / checked.measured.wal == pytest.approx(1.1, abs=0.35)
