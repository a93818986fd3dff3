"""The runs in flight in one worker process: waiting for a thread, running, or ended.

Producers put runs in and take ended ones out; handler threads do the reverse; heartbeat and watchdog only look.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from rowcall.base.clock import elapsed
from rowcall.queue import Lease
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.claims.pace import Pace, Room
from rowcall_worker.runtime.counts.counter import RunCounter
from rowcall_worker.runtime.wake_ups import WakeUps

# A run that no thread has begun within this time is unclaimed, so that another worker can begin it.
KEPT_SECONDS = 0.25

# How soon to retry a write that failed because the run's row was locked.
AGAIN_SECONDS = 1.0


class InFlight:
    """The state that a worker's threads share."""

    def __init__(self, threads: int, claims: int | None = None, deciding: bool = False) -> None:
        self.threads = threads
        self.runs: dict[Lease, InFlightRun] = {}
        self.waiting: queue.SimpleQueue[InFlightRun | None] = queue.SimpleQueue()
        self.tally: Counter[str] = Counter()
        self.counter = RunCounter()
        self.claimed, self._claims_left = 0, claims
        self.quiet = threading.Event()
        self.closing, self._begins = False, True
        self._unbegun: list[InFlightRun] = []
        self.failure: BaseException | None = None
        # Leases that a handler is assumed to have lost: nothing more is written under them.
        self.given_up: deque[Lease] = deque(maxlen=1000)
        self._ended: deque[InFlightRun] = deque()
        self._put_off: list[InFlightRun] = []
        self.wake_ups = WakeUps()
        self._lock = threading.Lock()
        self.reserved, self._leaving = 0, 0
        self._pace, self._written_at = Pace(), elapsed()
        # Runs were unclaimed: claim nothing ahead until a slot is free.
        self._returned = False
        # Whether the scheduler of `once` still makes runs due: until it has finished, no look shows that all is quiet.
        self.deciding, self._decided_at = deciding, 0.0
        # A producer found no slot, because the other one has reserved all of them; only that one's answer wakes it.
        self._turned_away = False
        # The suspect in flight, if any, and whether to claim nothing until a suspect can run alone.
        self._suspect: InFlightRun | None = None
        self._still = False
        # Without a heartbeat, leases would expire under working handlers.
        self._heartbeat_connected = True

    def guarded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Wrap the work of an essential thread: its error stops the worker."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.fails(error)

        return run

    def fails(self, error: BaseException) -> None:
        """Stop the worker cleanly, with this error."""
        self.failure = self.failure or error
        self.quiet.set()

    def reserve(self) -> Room:
        """Reserve slots for more runs; the caller keeps them until `accept`."""
        with self._lock:
            unfinished = len(self.runs) - self._leaving + self.reserved
            slots = max(self.threads - unfinished, 0)
            self._returned = self._returned and slots == 0
            target = self._target()
            # Half at a time: while one half is on its way, the handlers work on the other.
            room = min(target - unfinished, max(self.threads, target // 2))
            if self._claims_left is not None:
                room = min(room, self._claims_left - self.claimed - self.reserved)
            room = max(room, 0) if self._may_claim() and not self._stands_still() else 0
            slots = min(slots, room)
            self._turned_away = self._turned_away or (slots == 0 and (self.reserved > 0 or self._still))
            self.reserved += room
            return Room(slots, room - slots)

    def _may_claim(self) -> bool:
        return self._heartbeat_connected and not self.closing

    def _stands_still(self) -> bool:
        """Whether a run that must run alone is awaited or running."""
        suspect = self._suspect
        return self._still or (suspect is not None and suspect.claimed.alone and not suspect.settled)

    @property
    def has_suspect(self) -> bool:
        """Whether a run that lost a lease before is in flight."""
        return self._suspect is not None and self._suspect.lease in self.runs

    def stand_still(self, reserved: int) -> bool:
        """Reserve nothing more; return True if nothing is in flight, so that a run may be claimed to run alone.

        `reserved` is how many slots the caller itself has reserved.
        """
        with self._lock:
            more = self._claims_left is None or self.claimed + self.reserved - reserved < self._claims_left
            alone = self._may_claim() and more and not self.runs and self.reserved == reserved
            self._still = self._still or alone
            return alone

    def wait_until_empty(self) -> None:
        """Stop reserving, even if runs are in flight."""
        self._still = True

    def go_on(self) -> None:
        """Allow reservations again; a producer that found no room looks again."""
        with self._lock:
            self._still = False
            turned_away, self._turned_away = self._turned_away, False
        if turned_away:
            self.wake_ups.wake()

    def quick_types(self) -> list[str]:
        """Return the job types that may be claimed ahead."""
        with self._lock:
            return self._pace.quick_types()

    def accept(self, reserved: int, runs: Sequence[InFlightRun]) -> None:
        """Accept the runs that were claimed for this much reserved room; a producer that found no room looks again."""
        with self._lock:
            self.reserved -= reserved
            turned_away = self._turned_away and bool(reserved or runs)
            self._turned_away = self._turned_away and not turned_away
            self.claimed += len(runs)
            self.runs.update((run.lease, run) for run in runs)
            for run in runs:
                if run.claimed.suspect:
                    self._suspect, self._still = run, False
            begun, unbegun = (runs, []) if self._begins else ([], runs)
            self._unbegun += unbegun
        for run in begun:
            self.waiting.put(run)
        if turned_away:
            self.wake_ups.wake()

    def late(self) -> list[InFlightRun]:
        """If a run has waited for a thread for too long, take back all runs that no thread has begun."""
        if self.closing or self.waiting.empty():
            return []
        with self._lock:
            unbegun = (run.accepted_at for run in self.runs.values() if run.begun_at is None and not run.settled)
            if elapsed() - next(unbegun, elapsed()) < KEPT_SECONDS:
                return []
        late = self.withdraw()
        with self._lock:
            self._returned = True
            self.claimed -= len(late)
            for run in late:
                run.settled = True
        return late

    def settle(self, run: InFlightRun, result: AttemptResult) -> bool:
        """Record that an attempt ended; return False if its time limit, or the worker's stop, came first."""
        with self._lock:
            if run.settled:
                return False
            run.settled, run.ended_at = True, elapsed()
        run.result = result
        self._ended.append(run)
        self.wake_ups.wake()
        return True

    @property
    def full(self) -> bool:
        """Whether more than half of the target is in flight, and less than half of that has ended."""
        with self._lock:
            in_flight = len(self.runs)
            return in_flight * 2 > self._target() and len(self._ended) * 2 < in_flight

    def _target(self) -> int:
        """How many runs to have in flight: one per thread, plus the quick ones to claim ahead."""
        if self._returned:
            return self.threads
        return self.threads + self._pace.ahead(self.threads)

    def collect(self) -> list[InFlightRun]:
        """Collect all runs that have ended; they free their slots now, and stay in flight until they are written."""
        ended = []
        now = elapsed()
        with self._lock:
            while self._ended:
                ended.append(self._ended.popleft())
            self._pace.handled(ended)
            self._leaving += len(ended)
            ended += [run for run in self._put_off if run.write_at <= now]
            self._put_off = [run for run in self._put_off if run.write_at > now]
        return ended

    def put_off(self, ended: Sequence[InFlightRun]) -> None:
        """Set aside runs whose rows are locked, for a later try; they occupy no slot and block no other run."""
        with self._lock:
            for run in ended:
                run.write_at = elapsed() + AGAIN_SECONDS
            self._put_off += ended

    def put_back(self, ended: Sequence[InFlightRun]) -> None:
        """Put back those of the collected runs that are not written yet, for the next try."""
        with self._lock:
            unwritten = [run for run in ended if run.lease in self.runs]
            self._leaving -= len(unwritten)
            self._ended.extendleft(reversed(unwritten))

    def written(self, ended: Sequence[InFlightRun], ends: Sequence[str]) -> None:
        """Remove these runs and count the ends that are committed; the others are refused for good."""
        if self._suspect in ended:
            self.wake_ups.wake()  # the next suspect may begin
        with self._lock:
            for run in ended:
                self.runs.pop(run.lease, None)
            self._leaving -= len(ended)
            self.tally.update(ends)
            if ended:
                self._written_at = elapsed()
                self._pace.written(len(ended), self._written_at)

    def look_found_nothing(self, began_at: float) -> bool:
        """Record that a claim with room found nothing due; with nothing in flight either, the worker is idle.

        Return False if something has ended since the look began: it may have made room under a limit, so look again.
        """
        with self._lock:
            if began_at < max(self._written_at, self._decided_at):
                return False
            if not (self.runs or self.reserved or self._ended or self.deciding):
                self.quiet.set()
            return True

    def abandon(self, only: InFlightRun | None = None) -> list[InFlightRun]:
        """Give up the runs whose handlers have not ended, or this one, and return them; their results no longer count.

        Runs that have ended stay, because their results must still be written.
        """
        with self._lock:
            abandoned = [run for run in self.runs.values() if not run.settled and only in (None, run)]
            for run in abandoned:
                run.settled = True
        return abandoned

    def look_again(self) -> None:
        """Look again, because the scheduler has made runs due since the last look began."""
        with self._lock:
            self.deciding, self._decided_at = False, elapsed()
            self.quiet.clear()
        self.wake_ups.wake()

    def heartbeat_connected(self, connected: bool) -> None:
        """Record whether the heartbeat has a connection; nothing is reserved without one."""
        with self._lock:
            came_back, self._heartbeat_connected = connected and not self._heartbeat_connected, connected
        if came_back:
            self.wake_ups.wake()

    def close(self, begins: bool = False) -> None:
        """Stop reserving for good; runs of a claim in progress are still begun if `begins`, otherwise withdrawn."""
        with self._lock:
            self.closing, self._begins = True, begins

    @property
    def empty(self) -> bool:
        """Whether nothing runs, nothing waits to be written, and no claim in progress could bring more."""
        with self._lock:
            return not (self.runs or self._ended or self.reserved)

    def withdraw(self) -> list[InFlightRun]:
        """Take back the runs that no thread has begun."""
        with self._lock:
            withdrawn, self._unbegun = self._unbegun, []
        with suppress(queue.Empty):
            while True:
                if (run := self.waiting.get_nowait()) is not None:
                    withdrawn.append(run)
        return withdrawn

    def drop(self, runs: Sequence[InFlightRun]) -> None:
        """Remove these runs; their ends do not count."""
        with self._lock:
            for run in runs:
                run.settled = True
                self.runs.pop(run.lease, None)
