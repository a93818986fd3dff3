"""Runs of a claim whose result was lost: they are unclaimed, because this worker does not know that it has them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.logs import LogEvent, log
from rowcall.queue import Lease, held, unclaim
from rowcall.queue.claims.lanes import Lane, LaneKey
from rowcall_worker.runtime.in_flight import InFlight

# A statement may reach the server long after its connection was given up: look again for this long, doubling the pause.
FIRST_PAUSE_SECONDS = 0.5
LOOK_SECONDS = 60.0

# How soon to check whether the exchange of the other producer has ended.
STEP_SECONDS = 0.05


@dataclass
class Steps:
    """The step count of a producer: odd while an exchange is in progress."""

    taken: int = 0

    def step(self) -> None:
        """Record the start or the end of an exchange."""
        self.taken += 1

    def over(self, mark: int) -> bool:
        """Whether every exchange that was in progress at that mark has ended."""
        return self.taken != mark or mark % 2 == 0


@dataclass
class Stranded:
    """The lanes of lost claims, and the leases found there that this worker does not know of.

    A claim in progress also has leases that are not known yet.  So a lease counts as stranded only after all exchanges
    that were in progress when it was found have ended.
    """

    in_flight: InFlight
    other: Steps
    # Whether a claim was lost recently.
    looking: bool = False
    _lanes: dict[LaneKey, Lane] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lost_at: float = 0.0
    _due_at: float = 0.0
    _pause: float = FIRST_PAUSE_SECONDS
    _found: Sequence[Lease] = ()
    _mark: int = 0

    def lost(self, lanes: Sequence[Lane]) -> None:
        """Record that the result of a claim from these lanes was lost."""
        with self._lock:
            for lane in lanes:
                key = (lane.queue, lane.priority)
                self._lanes[key] = min(lane, self._lanes.get(key, lane))
            self.looking = True
            self._lost_at, self._due_at, self._pause = elapsed(), 0.0, FIRST_PAUSE_SECONDS

    @property
    def due_in(self) -> float:
        """The seconds until the next step."""
        if not self.looking:
            return float("inf")
        return STEP_SECONDS if self._found else max(self._due_at - elapsed(), 0.0)

    def give_back(self, connection: PgConnection, worker: str) -> None:
        """Look for stranded runs if it is time, and unclaim those found earlier."""
        if self._found and self.other.over(self._mark):
            self._return(connection, self._not_in_hand(self._found))
            self._found = ()
        if self.looking and not self._found and elapsed() >= self._due_at:
            self._look(connection, worker)

    def finish(self, connection: PgConnection, worker: str) -> None:
        """Unclaim the runs of lost claims at once, because the worker is stopping and no claim is in progress."""
        self._return(connection, self._not_in_hand(held(connection, worker, list(self._lanes.values()))))

    def _look(self, connection: PgConnection, worker: str) -> None:
        with self._lock:
            lanes = list(self._lanes.values())
        leases = held(connection, worker, lanes)
        self._found, self._mark = self._not_in_hand(leases), self.other.taken
        with self._lock:
            self._due_at, self._pause = elapsed() + self._pause, self._pause * 2
            if self._due_at > self._lost_at + LOOK_SECONDS:
                self.looking, self._lanes = False, {}

    def _not_in_hand(self, leases: Sequence[Lease]) -> list[Lease]:
        """Return the leases that are neither in flight nor given up by a handler that lost them."""
        in_flight = self.in_flight
        return [lease for lease in leases if lease not in in_flight.runs and lease not in in_flight.given_up]

    def _return(self, connection: PgConnection, leases: Sequence[Lease]) -> None:
        for run_id in unclaim(connection, leases):
            log().warning(LogEvent.RUN_RETURNED, run_id=run_id, reason="the result of its claim was lost")
