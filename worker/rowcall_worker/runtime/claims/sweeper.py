"""The sweeper: decides when this worker sweeps and where each sweep continues, and updates the lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.queue import ClaimRequest, Swept, sweep
from rowcall.queue.claims.lanes import find_lanes
from rowcall.queue.claims.sweep import FIRST_PLACE
from rowcall_worker.runtime.claims.lanes import Lanes

# The rest after a sweep is this many times as long as the sweep, so sweeps take at most a twentieth of one
# connection's time.
REST = 20

# How long claims may miss due runs that are before the lanes' heads, if a sweep takes only a moment.
INTERVAL_SECONDS = 1.0


@dataclass
class Sweeper:
    """Where the last sweep stopped, and when the next one is due; the first lap over all lanes starts at once."""

    interval: float
    lanes: Lanes
    # When the last complete lap began: everything due before that time is known.
    lap_began_at: float = float("-inf")
    hurried: bool = False
    _began_at: float = 0.0
    _place: Mapping[str, Any] = field(default_factory=lambda: FIRST_PLACE)
    _due_at: float = 0.0
    _rested_at: float = 0.0
    _found_at: float = 0.0

    @property
    def first_lap(self) -> bool:
        """Whether the first lap is not complete yet."""
        return self.lap_began_at == float("-inf")

    @property
    def due_in(self) -> float:
        """The seconds until the next sweep is due."""
        return max(self._due_at - elapsed(), 0.0)

    def hurry(self, at_once: bool) -> None:
        """Sweep soon, or at once, because something may be due that claims do not see."""
        self.hurried = True
        self._due_at = 0.0 if at_once else min(self._due_at, self._rested_at)

    def sweep(self, connection: PgConnection, request: ClaimRequest) -> Swept:
        """Make the next sweep if it is due."""
        began_at = elapsed()
        if began_at < self._due_at:
            return Swept(place=self._place)
        if self._place == FIRST_PLACE:
            self._began_at = began_at
        elif began_at >= self._found_at + self.interval:
            # A lap may take a long time, so find lanes with due runs in the meantime.
            self._found_at = began_at
            self.lanes.found(find_lanes(connection, request.queues))
        swept = sweep(connection, request, self._place)
        # A lap that has begun is completed, including its rests.
        self.hurried = not swept.complete
        self.lanes.swept(swept)
        self._place = swept.place
        if swept.complete:
            self.lap_began_at = self._began_at
        now = elapsed()
        self._rested_at = now if self.first_lap else now + REST * (now - began_at)
        self._due_at = max(self._rested_at, now + (self.interval if swept.complete else 0.0))
        return swept
