"""The sweeper: decides when this worker sweeps, and where each sweep continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.queue import ClaimRequest, Swept, sweep
from rowcall.queue.sweep import BEGINNING

# After a sweep it rests this many times as long as the sweep took: at most a twentieth of one connection's time.
REST = 20


@dataclass
class Sweeper:
    """Where the last sweep stopped, and when the next one is due; the first lap over all queues is made at once."""

    interval: float
    laps: int = 0
    _place: Mapping[str, Any] = field(default_factory=lambda: BEGINNING)
    _due_at: float = 0.0

    @property
    def first_lap(self) -> bool:
        """There are queues that this worker has not looked at yet."""
        return self.laps == 0

    def sweep(self, connection: PgConnection, request: ClaimRequest) -> Swept:
        """The next sweep, where it is due."""
        began_at = elapsed()
        if began_at < self._due_at:
            return Swept(place=self._place)
        swept = sweep(connection, request, self._place)
        self._place = swept.place
        self.laps += swept.complete
        now = elapsed()
        self._due_at = now if self.first_lap else now + max(self.interval, REST * (now - began_at))
        return swept
