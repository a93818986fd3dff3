"""What a worker should do, and what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowcall.base.errors import JobTypeUnknown
from rowcall.job_types import Catalogue, JobType

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

    def served(self, known: Catalogue) -> Mapping[str, JobType]:
        """Return the job types that the worker serves: all it knows, or those it was given."""
        for name in self.types or ():
            if name not in known:
                raise JobTypeUnknown(name, sorted(known))
        return {name: known[name] for name in (self.types or known)}


@dataclass(frozen=True)
class Report:
    """What a worker did, for its last line of output."""

    claimed: int
    succeeded: int
    failed: int
    dead: int
    handed_over: int
    seconds: float

    def __str__(self) -> str:
        handed_over = f", handed over {self.handed_over}" if self.handed_over else ""
        return (
            f"claimed {self.claimed}, succeeded {self.succeeded}, failed {self.failed}, dead {self.dead}{handed_over}"
            f" in {self.seconds:.1f} seconds"
        )
