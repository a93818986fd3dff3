"""When this process takes a run whose lease ran out: one at a time, because it may have killed its worker.

One that did so twice runs without neighbours.  A process that is idle takes it at once; a busy one stands still for it,
for a twentieth of its time at the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.queue import Claimed, ClaimRequest, claim_suspect
from rowcall_worker.runtime.claims.pace import Room
from rowcall_worker.runtime.claims.sweeper import REST
from rowcall_worker.runtime.in_flight import InFlight

# For how long a process first stands still until it is empty, and twice as long each time that this was in vain.
STILL_SECONDS = 1.0

NO_ROOM = Room(0, 0)


@dataclass
class Suspects:
    """When the next suspect is asked for, and whether this process stands still for one."""

    in_flight: InFlight
    interval: float
    # When this process asked last and there was none for it.
    none_since: float = float("-inf")
    _due_at: float = 0.0
    _patience: float = STILL_SECONDS
    _still_since: float | None = None
    _rested_at: float = 0.0

    @property
    def due_in(self) -> float:
        """The seconds until it stops standing still in vain."""
        return float("inf") if self._still_since is None else max(self._still_since + self._patience - elapsed(), 0.0)

    def hurry(self) -> None:
        """There may be one: ask with the next exchange."""
        self._due_at = 0.0

    def claim(
        self, connection: PgConnection, worker: str, request: ClaimRequest, room: Room
    ) -> tuple[Sequence[Claimed], Room]:
        """The next suspect, if this process may have one now, and the room that is left for other runs."""
        now = elapsed()
        if self.in_flight.has_suspect or now < self._due_at:
            return [], room
        alone = self.in_flight.stand_still(sum(room))
        if self._still_since is not None and not alone:
            if now < self._still_since + self._patience:
                return [], NO_ROOM
            self._patience *= 2
            self._go_on(now)
        if not alone and not room.slots:
            return [], room
        return self._ask(connection, worker, request, room, alone)

    def _ask(
        self, connection: PgConnection, worker: str, request: ClaimRequest, room: Room, alone: bool
    ) -> tuple[Sequence[Claimed], Room]:
        now = elapsed()
        found = claim_suspect(connection, worker, request, alone)
        if alone:
            self._patience = STILL_SECONDS
        if found.claimed is not None:
            self._rest(now)
            return [found.claimed], NO_ROOM if found.claimed.alone else Room(max(room.slots - 1, 0), room.ahead)
        if found.waits and now >= self._rested_at:
            self._still_since = now
            self.in_flight.wait_until_empty()
            return [], NO_ROOM
        self._due_at = now + self.interval
        if not found.waits:
            self.none_since = now
        self._go_on(now)
        return [], room

    def lost(self) -> None:
        """The connection was lost with what it asked for."""
        self._go_on(elapsed())

    def _go_on(self, now: float) -> None:
        self._rest(now)
        self.in_flight.go_on()

    def _rest(self, now: float) -> None:
        """It stands still no longer; the next time is as far off as this one was long."""
        if self._still_since is not None:
            self._rested_at, self._still_since = now + REST * (now - self._still_since), None
