"""What a worker remembers of the lanes: from where on its next claim walks each, and whose turn it is.

Nothing of it is stored: a stored head would leave a dead row behind with each claim, under the very snapshot that makes
heads necessary.  What a head hides (a commit that came late, a run that went back) the next sweep finds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rowcall.queue import ClaimResult, Swept
from rowcall.queue.claims.lanes import BEGINNING, Lane, LaneKey, Position
from rowcall.queue.claims.sweep import Walked

# How many lanes with something due one claim visits, and how many of those that had something last.
VISITS = 64
SPARE_VISITS = 16

# A claim walks this many taken runs again: transactions that overlapped may commit in another order.
AGAIN = 256


class Mark(NamedTuple):
    """Where a lane was walked from before a claim, and how many runs that claim took from it."""

    head: Position
    taken: int


@dataclass
class Memory:
    """One lane."""

    marks: deque[Mark] = field(default_factory=deque)
    taken: int = 0
    is_due: bool = False
    # Until a sweep has come to something to take or to the end, a claim would walk all the rest for nothing.
    is_known: bool = False
    # The number of the last claim in which it had its turn, and of the last that took from it.
    visited: int = 0
    served: int = 0
    swept_to: Position | None = None

    @property
    def start(self) -> Position:
        """From where the next claim walks."""
        return self.marks[0].head if self.marks else BEGINNING

    def claimed(self, head: Position, taken: int) -> None:
        """A claim found its head there: nothing before it could be taken."""
        self.marks.append(Mark(head, taken))
        self.taken += taken
        while self.taken - self.marks[0].taken >= AGAIN:
            self.taken -= self.marks.popleft().taken

    def swept(self, walked: Walked) -> None:
        """A sweep went through it, or through a part of it."""
        first, start = walked.first, walked.lane.start
        self.is_due = self.is_due or first is not None
        self.is_known = self.is_known or not walked.has_more
        reached = first or walked.until
        # Where claims have taken runs, only as far as the sweep before: what was not committed then, this one has seen.
        safe = min(reached, self.swept_to) if self.served and self.swept_to else reached
        if first is not None and first < self.start:
            self._begin_at(first)
        elif start <= self.start < safe:
            self._begin_at(safe)
        self.swept_to = reached

    def _begin_at(self, position: Position) -> None:
        self.marks = deque([Mark(position, 0)])
        self.taken = 0


class Lanes:
    """The lanes of one process's producers."""

    def __init__(self) -> None:
        self._lanes: dict[LaneKey, Memory] = {}
        self._seen: set[LaneKey] = set()
        self._claims = 0
        # How many lanes had their turn since something was taken, and gave nothing.
        self._in_vain = 0
        self._lock = threading.Lock()

    def visits(self) -> list[Lane]:
        """Which lanes the next claim visits, in this order.

        Each queue in its turn, the one visited longest ago first, so that no queue starves another, also not one that
        gives nothing because it is paused, locked or full; within a queue strictly the urgent first.
        """
        with self._lock:
            due = self._in_turn([key for key, lane in self._lanes.items() if lane.is_due])[:VISITS]
            return [Lane(*key, self._lanes[key].start) for key in self._in_turn([*due, *self._served_last()])]

    def _in_turn(self, keys: Sequence[LaneKey]) -> list[LaneKey]:
        turns: dict[str, int] = {}
        for key in keys:
            turns[key[0]] = max(turns.get(key[0], 0), self._lanes[key].visited)
        return sorted(keys, key=lambda key: (turns[key[0]], key))

    @property
    def due(self) -> bool:
        """Something is due, as far as claims and sweeps know; perhaps it is locked, or its queue is full."""
        with self._lock:
            return any(lane.is_due for lane in self._lanes.values())

    @property
    def unvisited(self) -> bool:
        """Lanes in which something is due have not had their turn since something was taken."""
        with self._lock:
            return self._in_vain < sum(lane.is_due for lane in self._lanes.values())

    def claimed(self, visited: Sequence[Lane], result: ClaimResult, full: bool) -> None:
        """What a claim found in the lanes that it visited; `full` when it had no room for more."""
        with self._lock:
            self._claims += 1
            due = 0
            for lane in visited:
                key = (lane.queue, lane.priority)
                memory = self._lanes.get(key)
                if memory is None:
                    continue
                head, taken = result.heads.get(key), result.taken[key]
                due += memory.is_due
                memory.is_due = head is not None
                if taken or not full:
                    memory.visited = self._claims
                if taken:
                    memory.served = self._claims
                if head is not None and taken:
                    memory.claimed(head, taken)
            self._in_vain = 0 if result.claimed else self._in_vain + due

    def found(self, keys: Sequence[LaneKey]) -> None:
        """Something is due in these lanes: the next claims visit them, before a sweep has come to them."""
        with self._lock:
            self._in_vain = 0
            for key in keys:
                self._seen.add(key)
                lane = self._lanes.setdefault(key, Memory(is_due=True))
                lane.is_due = lane.is_due or lane.is_known

    def swept(self, swept: Swept) -> None:
        """What a sweep saw: lanes that are new, runs before a head, and how far there is nothing to take."""
        with self._lock:
            for walked in swept.lanes:
                key = (walked.lane.queue, walked.lane.priority)
                self._seen.add(key)
                lane = self._lanes.setdefault(key, Memory())
                was_due = lane.is_due
                lane.swept(walked)
                if lane.is_due and not was_due:
                    self._in_vain = 0
            if swept.complete:
                self._in_vain = 0
                kept = {*self._seen, *self._served_last()}
                self._lanes = {key: lane for key, lane in self._lanes.items() if lane.is_due or key in kept}
                self._seen.clear()

    def _served_last(self) -> list[LaneKey]:
        """Those that had something last, and are empty now: what comes next very likely comes there."""
        idle = [key for key, lane in self._lanes.items() if lane.is_known and not lane.is_due]
        return sorted(idle, key=lambda key: self._lanes[key].served, reverse=True)[:SPARE_VISITS]
