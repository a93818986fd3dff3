"""What is simulated: how large the server is, how many workers there are, and what they do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.simulate.costs import Costs

# Of one worker process: heartbeat, two for claims and results, notifications, scheduler.
CONNECTIONS = 5


@dataclass(frozen=True)
class Site:
    """One cluster: a PostgreSQL leader with its own schema, and its share of the workers."""

    cores: int
    wal_bytes_per_second: float
    # How long a commit waits for the disk, and for a synchronous standby.
    flush_us: float
    # What the network to a synchronous standby carries; None without one.
    standby_bytes_per_second: float | None
    max_connections: int
    # The sessions that enqueue, and how many runs each of their transactions enqueues.
    clients: int
    at_once: int
    workers: int
    threads: int
    # How long a run takes.
    seconds: float
    # Behind PgBouncer in transaction mode: nothing is prepared, nobody listens, and connections are shared.
    pooled: bool = False
    # By PostgreSQL's default, autovacuum pauses for 2 ms when it has used 200 units.
    vacuum_units_per_second: float = 100_000.0
    poll_seconds: float = 1.0
    heartbeat_seconds: float = 30.0

    @classmethod
    def measured(cls, costs: Costs, workers: int = 1, seconds: float = 0.1) -> Site:
        """Return the machine on which the costs were measured, with PostgreSQL's and Rowcall's defaults."""
        return cls(
            cores=costs.machine["cores"],
            wal_bytes_per_second=costs.bytes_per_second,
            flush_us=costs.flush_us,
            standby_bytes_per_second=None,
            max_connections=100,
            clients=16,
            at_once=1,
            workers=workers,
            threads=10,
            seconds=seconds,
        )

    def changed(self, **values: object) -> Site:
        """Return it with other values."""
        return replace(self, **values)  # type: ignore[arg-type]
