"""The bounds of a cluster: each is a quotient of what it has and what a run needs, while runs always wait.

While runs wait, batches are full and no worker sleeps, so this is the most that a cluster carries.  How long runs wait
below that, and what idle workers cost, is simulated in events.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rowcall_worker.runtime.claims.pace import QUICK_SECONDS
from tests.simulate.costs import Costs
from tests.simulate.site import CONNECTIONS, Site

# Runs of an exchange while quick runs wait, whose ends a worker gathers for 4 milliseconds.
QUICK_BATCH = 100
# The sessions that PostgreSQL reserves, and a few for people and monitoring.
RESERVED_CONNECTIONS = 8
# A commit of many that wait for the disk together waits for half of the flush before its own.
GROUP_FLUSHES = 1.5
# How long a worker that was woken in vain polls until it sleeps again.
VAIN_SECONDS = 2.05
# After these, the time of a turn hardly changes.
ROUNDS = 20
# PgBouncer's default.
POOL_SIZE = 20
MOST = 1e7

# Names of bounds; those of the server's CPU are named after what uses most of it.
THREADS, WORKER_CPU, SERVER_CPU = "worker threads", "worker CPU", "server CPU"
IDLE, CONTENTION, VACUUM, NOTIFY = "idle workers", "contention", "vacuum", "NOTIFY"
WAL, STANDBY, FLUSHES, SESSIONS = "WAL to disk", "standby network", "disk flushes", "connections"


class Bound(NamedTuple):
    """What a cluster carries if nothing else limits it."""

    name: str
    runs_per_second: float


class Demand(NamedTuple):
    """What a rate needs: microseconds of the server's CPU each second by what uses them, and bytes of WAL."""

    server_us: Mapping[str, float]
    wal: float


def demand(costs: Costs, site: Site, rate: float) -> Demand:
    """Return what this many runs a second need of the server while runs wait."""
    size = batch(costs, site)
    enqueues, exchanges = rate / site.at_once, rate / size
    claim = exchanges * costs.exchange_us(size) * (costs.pooled if site.pooled else 1.0)
    waste = max(costs.contention(claimers(costs, site)) - 1.0, 0.0)
    lease_us = (costs.heartbeat_us(100) - costs.heartbeat_us(1)) / 99
    return Demand(
        {
            "enqueue": enqueues * costs.enqueue_us(site.at_once),
            "claims": claim + rate * site.seconds * lease_us / site.heartbeat_seconds,
            CONTENTION: claim * waste,
            IDLE: connected(site) * costs.idle.server_us,
            VACUUM: rate * costs.vacuum_us,
        },
        enqueues * costs.enqueue_wal(site.at_once) + exchanges * costs.exchange_wal(size) + rate * costs.vacuum_wal,
    )


def batch(costs: Costs, site: Site) -> float:
    """Return how many runs an exchange ends and claims while runs wait."""
    return QUICK_BATCH if site.seconds <= QUICK_SECONDS else max(_ended(costs, site), 1.0)


def claimers(costs: Costs, site: Site) -> float:
    """Return how many threads claim at the same time while runs wait."""
    return _claiming(site) if site.seconds <= QUICK_SECONDS else _at_once(site, _ended(costs, site))


def _ended(costs: Costs, site: Site) -> float:
    """Return how many runs of a worker end while the server serves all other claiming threads once.

    The longer that takes, the more runs have ended, and the more threads claim at the same time, which takes longer.
    """
    ended = 0.0
    for _ in range(ROUNDS):
        exchange = costs.exchange_us(max(ended, 1.0)) * costs.contention(_at_once(site, ended))
        turn = _claiming(site) * exchange / site.cores / 1e6
        ended = site.threads * turn / (site.seconds + turn)
    return ended


def _at_once(site: Site, ended: float) -> float:
    """Return for how many threads a run has ended meanwhile, so that they claim."""
    return max(_claiming(site) * min(ended, 1.0), 1.0)


def _claiming(site: Site) -> int:
    """Return how many threads claim: two of each worker while quick runs wait; PgBouncer lets 20 at the server."""
    claiming = connected(site) * (2 if site.seconds <= QUICK_SECONDS else 1)
    return min(claiming, POOL_SIZE) if site.pooled else claiming


def connected(site: Site) -> int:
    """Return how many workers get the connections that they need."""
    if site.pooled:
        return site.workers
    return max(min(site.workers, (site.max_connections - RESERVED_CONNECTIONS - site.clients) // CONNECTIONS), 0)


def bounds(costs: Costs, site: Site) -> list[Bound]:
    """Return all bounds, the first one first."""
    workers = connected(site)
    exchange = (costs.exchange_us(1) + site.flush_us) / 1e6
    each = site.threads / (site.seconds + (0.0 if site.seconds <= QUICK_SECONDS else exchange))
    program_us = costs.run_program_us + costs.look_program_us / batch(costs, site)
    performed = [Bound(THREADS, workers * each), Bound(WORKER_CPU, workers / program_us * 1e6)]
    if workers < site.workers:
        performed = [Bound(SESSIONS, min(bound.runs_per_second for bound in performed))]
    commit = (costs.enqueue_us(site.at_once) + GROUP_FLUSHES * site.flush_us) / 1e6
    found = [
        *performed,
        _server(costs, site),
        Bound(WAL, _most(lambda rate: demand(costs, site, rate).wal <= site.wal_bytes_per_second)),
        Bound(FLUSHES, site.clients * site.at_once / commit),
        Bound(VACUUM, site.vacuum_units_per_second / costs.vacuum_page_cost),
        *_standby(costs, site),
        *_notify(costs, site),
    ]
    return sorted(found, key=lambda bound: bound.runs_per_second)


def _server(costs: Costs, site: Site) -> Bound:
    """Return the bound of the server's CPU, named after what takes most of it."""
    rate = _most(lambda rate: sum(demand(costs, site, rate).server_us.values()) <= site.cores * 1e6)
    used = demand(costs, site, rate).server_us
    most = max(used, key=lambda name: used[name])
    claims = CONTENTION if used[CONTENTION] > used["claims"] else SERVER_CPU
    return Bound(most if most in (IDLE, VACUUM) else claims, rate)


def _standby(costs: Costs, site: Site) -> list[Bound]:
    carries = site.standby_bytes_per_second
    if carries is None:
        return []
    return [Bound(STANDBY, _most(lambda rate: demand(costs, site, rate).wal <= carries))]


def _notify(costs: Costs, site: Site) -> list[Bound]:
    """Transactions that notify commit one at a time, and signal each listener meanwhile.

    That bounds the enqueues if at any time some worker sleeps: if workers fall asleep faster than such commits end.
    """
    held = (site.flush_us + costs.sender_us(connected(site))) / 1e6
    rate = site.at_once / held
    idle = connected(site) - rate * site.seconds / site.threads
    return [Bound(NOTIFY, rate)] if not site.pooled and idle / VAIN_SECONDS * held >= 1 else []


def _most(fits: Callable[[float], bool]) -> float:
    """Return the highest rate that fits, by bisection."""
    low, high = 0.0, MOST
    while high - low > 1e-3 * high and high > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class Remedy(NamedTuple):
    """What to add when a bound comes first, and what it changes."""

    advice: str
    changed: Callable[[Site], Site]


def remedy(bound: str, site: Site) -> Remedy:
    """Return what to add when this bound comes first."""
    if bound == SESSIONS and site.max_connections >= MOST_CONNECTIONS:
        return POOLER
    if bound == FLUSHES:
        together = site.at_once * 10
        return Remedy(f"enqueue_many, {together} at once", lambda site: site.changed(at_once=together))
    return REMEDIES[bound]


# Beyond this, each session's memory matters more than what PgBouncer costs.
MOST_CONNECTIONS = 1_600

FEWER_PROCESSES = Remedy(
    "fewer processes with more threads each",
    lambda site: site.changed(workers=max(site.workers // 4, 1), threads=site.threads * 4),
)
POOLER = Remedy("PgBouncer in front of the workers", lambda site: site.changed(pooled=True))
REMEDIES = {
    THREADS: Remedy(
        "more workers, or a higher ROWCALL_CONCURRENCY", lambda site: site.changed(threads=site.threads * 4)
    ),
    WORKER_CPU: Remedy("more worker processes", lambda site: site.changed(workers=site.workers * 4)),
    SERVER_CPU: Remedy("more cores, or another cluster", lambda site: site.changed(cores=site.cores * 4)),
    IDLE: FEWER_PROCESSES,
    CONTENTION: FEWER_PROCESSES,
    VACUUM: Remedy(
        "a higher autovacuum_vacuum_cost_limit",
        lambda site: site.changed(vacuum_units_per_second=site.vacuum_units_per_second * 10),
    ),
    NOTIFY: POOLER,
    WAL: Remedy(
        "a faster disk, or another cluster",
        lambda site: site.changed(wal_bytes_per_second=site.wal_bytes_per_second * 4),
    ),
    STANDBY: Remedy(
        "a faster network, or another cluster",
        lambda site: site.changed(standby_bytes_per_second=(site.standby_bytes_per_second or 0) * 4),
    ),
    SESSIONS: Remedy("a higher max_connections", lambda site: site.changed(max_connections=site.max_connections * 4)),
}
