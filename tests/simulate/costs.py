"""The measured costs, from docs/benchmarks/costs.json, which `make bench BENCH_ARGS="--part scaling"` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.scaling.usage import Usage


@dataclass(frozen=True)
class Curve:
    """Measured points; between two of them, and beyond the last two, it is a straight line."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, table: Mapping[str, float]) -> Curve:
        """Read a table whose keys are numbers."""
        return cls(tuple(sorted((float(at), value) for at, value in table.items())))

    def __call__(self, at: float) -> float:
        """Return the value here."""
        if at <= self.points[0][0]:
            return self.points[0][1]
        segments = [*pairwise(self.points)]
        (left, low), (right, high) = next((pair for pair in segments if at <= pair[1][0]), segments[-1])
        return low + (high - low) * (at - left) / (right - left)


@dataclass(frozen=True)
class Costs:
    """Microseconds of CPU time and bytes of WAL; curves by the number of runs, leases, listeners or claimers."""

    machine: Mapping[str, Any]
    date: str
    # Of an exchange that ends and claims this many runs.
    exchange_us: Curve
    # The same with pauses between them.
    paced_us: Curve
    exchange_wal: Curve
    # How much more the same runs cost beside other claimers.
    contention: Curve
    # Of a transaction that enqueues this many runs.
    enqueue_us: Curve
    enqueue_wal: Curve
    # Of the two statements with which a worker falls asleep and wakes up.
    sleep_us: float
    sleep_wal: float
    heartbeat_us: Curve
    sender_us: Curve
    listener_us: Curve
    # How many times as much an exchange costs through PgBouncer, where no statement is prepared.
    pooled: float
    pooler_us: float
    beside_500_idle: float
    idle_bytes: float
    vacuum_us: float
    vacuum_wal: float
    # In autovacuum's own units, of which it may use 200 every 2 milliseconds.
    vacuum_page_cost: float
    # Of the worker for each run in full batches, and for each look.
    run_program_us: float
    look_program_us: float
    # Of an idle worker, each second.
    idle: Usage
    table_bytes: float
    index_bytes: float
    flush_us: float
    bytes_per_second: float

    @classmethod
    def read(cls, path: Path) -> Costs:
        """Read the file."""
        found: dict[str, Any] = json.loads(path.read_text())
        for field in fields(cls):
            if field.type == "Curve":
                found[field.name] = Curve.of(found[field.name])
        return cls(**{**found, "idle": Usage(**found["idle"])})
