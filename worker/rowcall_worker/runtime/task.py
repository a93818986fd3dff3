"""What a worker should do, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# How long `once` ticks and claims: cron starts the next worker after a minute.
MAX_TIME_SECONDS = 55.0


@dataclass(frozen=True)
class Task:
    """What a worker should do, from the command line."""

    once: bool
    concurrency: int
    queues: Sequence[str] | None = None
    types: Sequence[str] | None = None
    limit: int | None = None
    max_time: float = MAX_TIME_SECONDS


@dataclass(frozen=True)
class Report:
    """What a worker did, for its last line of output."""

    claimed: int
    succeeded: int
    failed: int
    dead: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"claimed {self.claimed}, succeeded {self.succeeded}, failed {self.failed}, dead {self.dead}"
            f" in {self.seconds:.1f} seconds"
        )
