"""When this process takes a suspect: one at a time, because the run may have killed its worker.

A run that lost two leases runs alone. An idle process takes it at once. A busy one claims nothing else until it is
empty and while this run runs, for at most a twentieth of its time.
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

# How long a process first waits to be empty; the time doubles whenever it has waited in vain.
STILL_SECONDS = 1.0

NO_ROOM = Room(0, 0)


@dataclass
class Suspects:
    """When to ask for the next suspect, and whether this process is keeping itself empty for one."""

    in_flight: InFlight
    interval: float
    # When this process last looked and found no suspect.
    none_since: float = float("-inf")
    # Whether all claims of other runs since the last suspect that ran alone found nothing; None if there was no claim.
    _idle: bool | None = None
    _due_at: float = 0.0
    _patience: float = STILL_SECONDS
    # When this process stopped claiming other runs for a suspect, and whether that suspect has begun.
    _still_since: float | None = None
    _begun: bool = False
    _rested_at: float = 0.0

    @property
    def due_in(self) -> float:
        """Seconds until the process gives up waiting to be empty."""
        if self._still_since is None or self._begun:
            return float("inf")
        return max(self._still_since + self._patience - elapsed(), 0.0)

    @property
    def due(self) -> bool:
        """Whether it is time to ask for a suspect."""
        return elapsed() >= self._due_at and not self.in_flight.has_suspect

    def others(self, claimed: bool) -> None:
        """Record whether a claim of other runs found any."""
        self._idle = not claimed and self._idle is not False

    def hurry(self) -> None:
        """Ask for a suspect in the next exchange, because there may be one."""
        self._due_at = 0.0

    def claim(
        self, connection: PgConnection, worker: str, request: ClaimRequest, room: Room
    ) -> tuple[Sequence[Claimed], Room]:
        """Claim a suspect if this process may have one now; return it and the room left for other runs."""
        now = elapsed()
        if self.in_flight.has_suspect:
            return [], room
        if self._begun:
            self._rest(now)
        if now < self._due_at:
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
        rested = now >= self._rested_at
        found = claim_suspect(connection, worker, request, alone and (self._idle is True or rested))
        if alone:
            self._patience = STILL_SECONDS
        if found.claimed is not None:
            return self._take(found.claimed, room, now)
        if found.waits and rested and not alone:
            self._still_since = now
            self.in_flight.wait_until_empty()
            return [], NO_ROOM
        # If a limit makes a suspect wait for a run of this process, look again when that run has ended.
        self._due_at = now if found.behind else now + self.interval
        if not found.waits:
            self.none_since = now
        self._go_on(now)
        return [], room

    def _take(self, claimed: Claimed, room: Room, now: float) -> tuple[Sequence[Claimed], Room]:
        if not claimed.alone:
            self._rest(now)
            return [claimed], Room(max(room.slots - 1, 0), room.ahead)
        self._still_since, self._begun = self._still_since or now, True
        self._idle = None
        return [claimed], NO_ROOM

    def lost(self) -> None:
        """Record that the connection was lost during a claim."""
        if not self._begun:
            self._go_on(elapsed())

    def _go_on(self, now: float) -> None:
        self._rest(now)
        self.in_flight.go_on()

    def _rest(self, now: float) -> None:
        """Let the process fill again; do not empty it for another suspect until twenty times that time has passed."""
        if self._still_since is not None:
            self._rested_at = now + REST * (now - self._still_since)
        self._still_since, self._begun = None, False
