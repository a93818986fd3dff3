"""What a worker remembers of the lanes: where its next claim starts in each, and whose turn it is.

This is not stored in the database: with each claim, a stored head would leave a dead row version, which the same old
snapshot that makes heads necessary would keep.  The next sweep finds what a head hides (a late commit, a returned run).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rowcall.queue import ClaimResult, Swept
from rowcall.queue.claims.lanes import BEGINNING, Lane, LaneKey, Position
from rowcall.queue.claims.sweep import Walked

# How many lanes with something due a claim visits, and how many lanes from which runs were taken recently.
VISITS = 64
SPARE_VISITS = 16

# A claim scans this many taken runs again, because overlapping transactions may commit in a different order.
AGAIN = 256


class Mark(NamedTuple):
    """The start of a lane before a claim, and how many runs the claim took from it."""

    head: Position
    taken: int


@dataclass
class Memory:
    """What is known about one lane."""

    marks: deque[Mark] = field(default_factory=deque)
    taken: int = 0
    was_taken_from: bool = False
    # Until a sweep finds something to take or reaches the end, a claim would scan the rest of the lane in vain.
    is_known: bool = False
    # The number of the last claim that visited it.
    visited: int = 0
    swept_to: Position | None = None

    @property
    def start(self) -> Position:
        """Where the next claim starts."""
        return self.marks[0].head if self.marks else BEGINNING

    def claimed(self, head: Position, taken: int) -> None:
        """Record the head that a claim found: nothing before it could be taken."""
        self.was_taken_from = True
        self.marks.append(Mark(head, taken))
        self.taken += taken
        while self.taken - self.marks[0].taken >= AGAIN:
            self.taken -= self.marks.popleft().taken

    def swept(self, walked: Walked) -> None:
        """Record that a sweep visited all or part of the lane."""
        first, start = walked.first, walked.lane.start
        self.is_known = self.is_known or not walked.has_more
        reached = first or walked.until
        # If claims have taken runs, only as far as the previous sweep: this one has seen what was not committed then.
        safe = min(reached, self.swept_to) if self.was_taken_from and self.swept_to else reached
        if first is not None and first < self.start:
            self._begin_at(first)
        elif start <= self.start < safe:
            self._begin_at(safe)
        self.swept_to = reached

    def _begin_at(self, position: Position) -> None:
        self.marks = deque([Mark(position, 0)])
        self.taken = 0


class Lanes:
    """The lanes that the producers of one process share."""

    def __init__(self) -> None:
        self._lanes: dict[LaneKey, Memory] = {}
        # The lanes with something due, and at the end a few from which runs were taken lately: a claim must not look at
        # each of thousands of lanes.
        self._due: set[LaneKey] = set()
        self._spare: dict[LaneKey, None] = {}
        self._seen: set[LaneKey] = set()
        self._claims = 0
        # How many lanes have been visited in vain since a run was last taken.
        self._in_vain = 0
        self._lock = threading.Lock()

    def visits(self) -> list[Lane]:
        """Return the lanes that the next claim visits, in order.

        The queue visited longest ago comes first, so that no queue starves another, even if it is paused, locked or
        full; within a queue, the most urgent priority comes first.  A few lanes without due runs are included if they
        recently had some, because the next run is likely to arrive there.
        """
        with self._lock:
            keys = [*self._in_turn(self._due)[:VISITS], *(key for key in self._spare if key not in self._due)]
            return [Lane(*key, self._lanes[key].start) for key in self._in_turn(keys)]

    def _in_turn(self, keys: Collection[LaneKey]) -> list[LaneKey]:
        turns: dict[str, int] = {}
        for key in keys:
            turns[key[0]] = max(turns.get(key[0], 0), self._lanes[key].visited)
        return sorted(keys, key=lambda key: (turns[key[0]], key))

    @property
    def due(self) -> bool:
        """Whether something is due, as far as claims and sweeps know; it may be locked, or its queue full."""
        return bool(self._due)

    @property
    def unvisited(self) -> bool:
        """Whether a lane with something due has not had its turn since something was taken."""
        return self._in_vain < len(self._due)

    def claimed(self, visited: Sequence[Lane], result: ClaimResult, full: bool) -> None:
        """Record what a claim found in the lanes it visited; `full` if it had no room for more."""
        with self._lock:
            self._claims += 1
            known = [lane.key for lane in visited if lane.key in self._lanes]
            self._in_vain = 0 if result.claimed else self._in_vain + sum(key in self._due for key in known)
            for key in known:
                self._visited(key, result.heads.get(key), result.taken[key], full)

    def _visited(self, key: LaneKey, head: Position | None, taken: int, full: bool) -> None:
        memory = self._lanes[key]
        if head is None:
            self._due.discard(key)
        else:
            self._due.add(key)
        if taken or not full:
            memory.visited = self._claims
        if head is not None and taken:
            memory.claimed(head, taken)
            self._spare.pop(key, None)
            self._spare[key] = None
            if len(self._spare) > SPARE_VISITS:
                del self._spare[next(iter(self._spare))]

    def found(self, lanes: Sequence[Lane]) -> None:
        """Note lanes with something due, which the next claims visit before a sweep has seen them."""
        with self._lock:
            self._in_vain = 0
            for lane in lanes:
                self._seen.add(lane.key)
                if lane.key not in self._lanes or self._lanes[lane.key].is_known:
                    self._lanes.setdefault(lane.key, Memory())
                    self._due.add(lane.key)

    def swept(self, swept: Swept) -> None:
        """Record what a sweep saw: new lanes, runs before a head, and up to where there is nothing to take."""
        with self._lock:
            for walked in swept.lanes:
                key = walked.lane.key
                self._seen.add(key)
                self._lanes.setdefault(key, Memory()).swept(walked)
                if self._lanes[key].is_known and len(self._spare) < SPARE_VISITS:
                    self._spare.setdefault(key, None)
                if walked.first is not None and key not in self._due:
                    self._due.add(key)
                    self._in_vain = 0
            if swept.complete:
                self._in_vain = 0
                kept = self._seen | self._due | self._spare.keys()
                self._lanes = {key: lane for key, lane in self._lanes.items() if key in kept}
                self._seen.clear()
