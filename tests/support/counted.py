"""Counts of a worker, as it writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rowcall.base.database import Connection
from rowcall.queue.series.histogram import bucket_of
from rowcall.queue.series.record import MinuteCounts, write_counts


def counted(
    connection: Connection,
    at: datetime,
    worker: str = "w1",
    job_type: str = "noop",
    waited: tuple[float, ...] = (),
    ran: tuple[float, ...] = (),
    **ends: Any,
) -> None:
    """Write what this worker counted for the type in the minute of this time."""
    counts = MinuteCounts(int(at.timestamp() // 60), job_type, **ends)
    for seconds in waited:
        counts.waiting[bucket_of(seconds)] += 1
    for seconds in ran:
        counts.running[bucket_of(seconds)] += 1
    write_counts(connection, worker, [counts])
