"""What one worker process has in hand: the runs it holds, those that wait for a thread, and those that have ended.

Claiming threads put runs in and take outcomes out; handler threads do the reverse; the heartbeat looks on.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowcall.base.clock import elapsed
from rowcall.queue import Claimed
from rowcall.status import Status
from rowcall_worker.attempt.result import AttemptError

# Runs that take a millisecond are claimed ahead, so that a round trip serves many; those that take seconds are not,
# because what one process has claimed no other can begin.
AHEAD_SECONDS = 0.05
AHEAD_MOST = 2000

# An outcome is written this late at the latest, when others are about to join it.
FLUSH_SECONDS = 0.004
FLUSH_STEP_SECONDS = 0.0005


class InFlightRun:
    """One run in hand: its lease as the database last confirmed it, and what its handler has to be told.

    Progress and forensics are JSON text; forensics tell how its child process ended, where it had one.
    """

    __slots__ = ("begun_at", "cancel_requested", "claimed", "deadline", "forensics", "lost", "progress", "settled")

    def __init__(self, claimed: Claimed, deadline: float) -> None:
        self.claimed = claimed
        self.deadline = deadline
        self.begun_at: float | None = None
        self.cancel_requested = False
        self.lost = False
        self.settled = False
        self.progress: str | None = None
        self.forensics: str | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Run and lease: the same run may come back under a new lease while an old handler still runs."""
        return self.claimed.run_id, self.claimed.lease_no


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: with a result (JSON text), or with a verdict on the error that the handler raised.

    `finished`: the handler's own transaction has written the success already.
    """

    run: InFlightRun
    result: str | None = None
    verdict: AttemptError | None = None
    finished: bool = False


class InFlight:
    """The state that a worker's threads share."""

    def __init__(self, threads: int, claims: int | None = None) -> None:
        self.threads = threads
        self.held: dict[tuple[int, int], InFlightRun] = {}
        self.waiting: queue.SimpleQueue[InFlightRun | None] = queue.SimpleQueue()
        self.tally: Counter[Status] = Counter()
        self.claimed = 0
        self.quiet = threading.Event()
        self.closing = False
        self.failure: Exception | None = None
        self._claims_left = claims
        self._outcomes: deque[Outcome] = deque()
        self._wakers: list[threading.Event] = []
        self._lock = threading.Lock()
        self._reserved = 0
        self._leaving = 0
        self._rate = 0.0
        self._written_at = elapsed()

    def guarded(self, work: Callable[[], None]) -> Callable[[], None]:
        """The same work, for a thread without which the worker is none: its error ends the whole worker."""

        def run() -> None:
            try:
                work()
            except Exception as error:
                self.failure = error
                self.quiet.set()

        return run

    def waker(self) -> threading.Event:
        """An event that is set whenever there may be something to claim or to write."""
        event = threading.Event()
        event.set()
        self._wakers.append(event)
        return event

    def wake(self) -> None:
        """Let the claiming threads look."""
        for event in self._wakers:
            if not event.is_set():
                event.set()

    def reserve(self) -> int:
        """Room for more runs beside those that are not ending yet; kept until the caller says what came of it."""
        with self._lock:
            target = self._target()
            # Half at a time: while one pump's half is on its way, the handlers have the other's.
            room = min(target - (len(self.held) - self._leaving) - self._reserved, max(self.threads, target // 2))
            if self._claims_left is not None:
                room = min(room, self._claims_left - self.claimed - self._reserved)
            room = 0 if self.closing else max(room, 0)
            self._reserved += room
            return room

    def accept(self, reserved: int, runs: Sequence[InFlightRun]) -> None:
        """Take over what came of a reservation."""
        with self._lock:
            self._reserved -= reserved
            self.claimed += len(runs)
            self.held.update((run.key, run) for run in runs)
        for run in runs:
            self.waiting.put(run)

    def settle(self, outcome: Outcome) -> bool:
        """An attempt has ended.  Only its first end counts: False when its time limit, or our own end, was before."""
        run = outcome.run
        with self._lock:
            if run.settled:
                return False
            run.settled = True
        self._outcomes.append(outcome)
        self.wake()
        return True

    def gather(self) -> None:
        """With the hands full, give quick handlers a few milliseconds to end together: a round trip serves them all."""
        until = elapsed() + FLUSH_SECONDS
        while self._full() and not self.waiting.empty() and elapsed() < until:
            time.sleep(FLUSH_STEP_SECONDS)  # to be woken by each of them is what this saves

    def _full(self) -> bool:
        """More than half of what may be held is held, and less than half of that has ended."""
        held = len(self.held)
        return held * 2 > self._target() and len(self._outcomes) * 2 < held

    def _target(self) -> int:
        """How many runs to hold: one for each thread, and what quick ones take in a moment."""
        return self.threads + int(min(self._rate * AHEAD_SECONDS, AHEAD_MOST))

    def collect(self) -> list[Outcome]:
        """All outcomes there are, to be written; their runs make room for others, and stay held until then."""
        outcomes = []
        with self._lock:
            while self._outcomes:
                outcomes.append(self._outcomes.popleft())
            self._leaving += len(outcomes)
        return outcomes

    def put_back(self, outcomes: Sequence[Outcome]) -> None:
        """What could not be written yet is kept for the next try."""
        with self._lock:
            self._leaving -= len(outcomes)
            self._outcomes.extendleft(reversed(outcomes))

    def written(self, outcomes: Sequence[Outcome], statuses: Sequence[Status]) -> None:
        """The outcomes are committed: their runs are no longer in hand."""
        with self._lock:
            for outcome in outcomes:
                self.held.pop(outcome.run.key, None)
            self._leaving -= len(outcomes)
            self.tally.update(statuses)
            if not outcomes:
                return
            now = elapsed()
            sample = len(outcomes) / max(now - self._written_at, 1e-4)
            # Half of the new sample: quick to follow a change, and not thrown by one odd batch.
            self._rate = (self._rate + sample) / 2
            self._written_at = now

    def look_found_nothing(self, began_at: float) -> bool:
        """A claim with room found nothing due; with nothing in hand either, all is quiet.

        False when something has ended since the look began: it may have made room under a limit, so look again.
        """
        with self._lock:
            if began_at < self._written_at:
                return False
            # What comes next may take long: a quick past must not make this worker hoard it.
            self._rate = 0.0
            if not (self.held or self._reserved or self._outcomes):
                self.quiet.set()
            return True

    def close(self) -> None:
        """Reserve nothing from now on; a claim that is under way still counts as something in hand."""
        with self._lock:
            self.closing = True

    @property
    def empty(self) -> bool:
        """Nothing runs, nothing waits to be written, and no claim is under way that could bring more."""
        with self._lock:
            return not (self.held or self._outcomes or self._reserved)

    def withdraw(self) -> list[InFlightRun]:
        """Take back the runs that no thread has begun."""
        withdrawn: list[InFlightRun] = []
        while True:
            try:
                run = self.waiting.get_nowait()
            except queue.Empty:
                return withdrawn
            if run is not None:
                withdrawn.append(run)

    def drop(self, runs: Sequence[InFlightRun]) -> None:
        """These are no longer in hand."""
        with self._lock:
            for run in runs:
                run.settled = True
                self.held.pop(run.key, None)
