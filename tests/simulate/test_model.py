"""The model: each bound comes first where it should, adding what it asks for helps, and what waits is simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.scaling.usage import Usage
from tests.simulate.costs import Costs, Curve
from tests.simulate.events import Simulation
from tests.simulate.model import (
    CONTENTION,
    FLUSHES,
    IDLE,
    NOTIFY,
    SERVER_CPU,
    SESSIONS,
    STANDBY,
    THREADS,
    VACUUM,
    WAL,
    WORKER_CPU,
    bounds,
    remedy,
)
from tests.simulate.site import Site
from tests.simulate.tables import Layout, depth, first_bound

# Round figures, near those that were measured.
COSTS = Costs(
    machine={"cores": 2},
    date="2026-01-01",
    exchange_us=Curve(((0, 100), (1, 500), (10, 600), (100, 2_000))),
    paced_us=Curve(((0, 300), (1, 800), (10, 1_000))),
    exchange_wal=Curve(((0, 0), (1, 500), (100, 45_000))),
    contention=Curve(((1, 1.0), (64, 1.1))),
    enqueue_us=Curve(((1, 300), (1_000, 8_000))),
    enqueue_wal=Curve(((1, 400), (1_000, 370_000))),
    sleep_us=500,
    sleep_wal=500,
    heartbeat_us=Curve(((1, 500), (100, 1_400))),
    sender_us=Curve(((1, 60), (500, 3_000))),
    listener_us=Curve(((1, 20), (500, 30))),
    pooled=2.5,
    pooler_us=80,
    beside_500_idle=1.1,
    idle_bytes=1.2e6,
    vacuum_us=2,
    vacuum_wal=20,
    vacuum_page_cost=0.5,
    run_program_us=10,
    look_program_us=300,
    idle=Usage(2_500, 3_000, 30, 6),
    table_bytes=430,
    index_bytes=100,
    flush_us=1_000,
    bytes_per_second=200e6,
)

# A large server with enough of everything, and workers with many threads.
AMPLE = Site.measured(COSTS, workers=200).changed(
    cores=10_000, wal_bytes_per_second=1e12, max_connections=10_000, clients=4_000, threads=1_000
)

FIRST = {
    THREADS: AMPLE.changed(threads=1),
    WORKER_CPU: AMPLE.changed(workers=1, at_once=1_000, seconds=0.001),
    SERVER_CPU: AMPLE.changed(cores=2),
    IDLE: AMPLE.changed(cores=2, workers=790),
    CONTENTION: AMPLE.changed(cores=2, at_once=1_000),
    VACUUM: AMPLE.changed(vacuum_units_per_second=10.0),
    NOTIFY: AMPLE.changed(workers=1_000),
    WAL: AMPLE.changed(wal_bytes_per_second=1e6),
    STANDBY: AMPLE.changed(standby_bytes_per_second=1e6),
    FLUSHES: AMPLE.changed(flush_us=50_000.0, clients=16, workers=20),
    SESSIONS: AMPLE.changed(clients=16, max_connections=60, threads=10),
}


def costs_for(bound: str) -> Costs:
    """Return costs with which this bound can come first: claims that cost ten times as much beside each other."""
    return replace(COSTS, contention=Curve(((1, 1.0), (2, 10.0)))) if bound == CONTENTION else COSTS


@pytest.mark.parametrize("bound", FIRST)
def test_each_bound_comes_first_where_everything_else_is_ample(bound: str) -> None:
    assert bounds(costs_for(bound), FIRST[bound])[0].name == bound


@pytest.mark.parametrize("bound", FIRST)
def test_adding_what_a_bound_asks_for_carries_more(bound: str) -> None:
    costs, site = costs_for(bound), FIRST[bound]
    added = remedy(bound, site).changed(site)
    assert bounds(costs, added)[0].runs_per_second > bounds(costs, site)[0].runs_per_second


def test_clusters_share_the_hosts_and_carry_their_sum() -> None:
    site = Site.measured(COSTS)
    whole, uneven = (first_bound(COSTS, site, Layout(1, clusters), 10) for clusters in (1, 4))
    assert whole is not None
    assert uneven is not None
    assert uneven.runs_per_second == pytest.approx(whole.runs_per_second)  # ten workers' threads, however divided
    assert first_bound(COSTS, site, Layout(1, 16), 10) is None  # six of the clusters would have no worker


def test_an_index_grows_by_a_level_at_a_time() -> None:
    assert [depth(rows) for rows in (100, 100_000, 10_000_000, 100_000_000)] == [1, 2, 3, 4]


def test_a_run_that_comes_alone_takes_as_many_commits_as_the_worker_makes() -> None:
    site = Site.measured(COSTS, seconds=0.0001)
    quiet = replace(COSTS, idle=Usage(0, 0, 0, 0))
    found = Simulation(quiet, site, 2.0, 20.0).run()
    # Enqueue, claim, wake up, finish; two more looks; fall asleep in two statements; two looks with one statement each.
    assert found.commits / found.enqueued == pytest.approx(12, abs=1)
    assert found.notifications == pytest.approx(found.enqueued, rel=0.1)


def test_runs_wait_longer_the_more_a_cluster_is_loaded() -> None:
    site = Site.measured(COSTS, workers=2)
    most = bounds(COSTS, site)[0].runs_per_second
    light, heavy, over = (Simulation(COSTS, site, most * load, 20.0).run().waits_after(2.0) for load in (0.3, 0.9, 1.3))
    assert light[len(light) // 2] < 0.005
    assert heavy[int(len(heavy) * 0.95)] > 5 * light[int(len(light) * 0.95)]
    assert over[-1] > 1.0  # the queue grows


def test_a_saturated_cluster_carries_what_the_quotient_says() -> None:
    site = Site.measured(COSTS, workers=3)
    most = bounds(COSTS, site)[0]
    assert most.name == THREADS
    found = Simulation(COSTS, site, most.runs_per_second * 1.5, 20.0).run()
    assert found.done / 20.0 == pytest.approx(most.runs_per_second, rel=0.05)


@pytest.mark.parametrize("workers", [20, 40])
def test_the_quotient_of_the_servers_cpu_is_near_what_waiting_runs_reach_in_the_simulation(workers: int) -> None:
    costs = replace(COSTS, paced_us=COSTS.exchange_us, contention=Curve(((1, 1.0), (2, 1.0))))
    site = Site.measured(costs, workers).changed(cores=1, max_connections=1_000, at_once=20_000)
    most = bounds(costs, site)[0]
    assert most.name == SERVER_CPU
    simulation = Simulation(costs, site, 0.0, 5.0)
    simulation.burst(0.0, 20_000)
    # The simulation reached 1.03 and 1.2 times as much: its batches grow while claims wait for the core.
    assert 0.9 <= simulation.run().done / 5.0 / most.runs_per_second <= 1.35


def test_runs_of_a_lost_worker_begin_again_when_their_leases_end() -> None:
    simulation = Simulation(COSTS, Site.measured(COSTS, workers=4, seconds=1.0), 20.0, 150.0)
    simulation.lose(10.0, 1, 120.0)
    late = [waited for waited in simulation.run().waits_after(0.0) if waited > 10]
    assert 1 <= len(late) <= 10
    assert 90 <= late[0] <= late[-1] <= 121


def test_a_notification_wakes_every_worker_unless_they_poll() -> None:
    def used(workers: int, pooled: bool) -> float:
        found = Simulation(COSTS, Site.measured(COSTS, workers).changed(pooled=pooled), 2.0, 10.0).run()
        assert bool(found.notifications) is not pooled
        return found.server_us - workers * COSTS.idle.server_us * 10

    assert used(40, pooled=False) > 10 * used(1, pooled=False)
    assert used(40, pooled=True) < 0.5 * used(40, pooled=False)
