"""Discrete events: workers that poll, sleep and are woken share one server.  For what waits, which no quotient tells.

A worker follows rowcall_worker/runtime/claims/sleep.py.  The server's cores serve statements one after another; a
commit that writes also waits for the disk, without a core.  Not simulated: a worker's second claiming thread, claims
ahead, and locks between claims.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from rowcall_worker.runtime.claims.sleep import AWAKE_SECONDS, FIRST_PAUSE_SECONDS, IN_VAIN_SECONDS
from tests.simulate.costs import Costs
from tests.simulate.site import Site

FOREVER = float("inf")
# From the notification to the claim, and from the answer to the handler.
WAKE_SECONDS = 0.0004


@dataclass
class Worker:
    """One worker process."""

    free: int
    ended: int = 0
    state: str = "asleep"
    pause: float = FOREVER
    in_vain: bool = False
    heard: bool = False
    looking: bool = False
    again: bool = False
    dead: bool = False
    timer: int = 0
    runs: dict[int, float] = field(default_factory=dict)


@dataclass
class Simulation:
    """One cluster for some seconds."""

    costs: Costs
    site: Site
    # Runs a second, enqueued one by one at random times.
    rate: float
    seconds: float
    # Whether all runs take equally long; otherwise at random, with the same mean.
    even: bool = False
    # After this time nothing more is enqueued.
    until: float = FOREVER
    seed: int = 1
    now: float = 0.0
    commits: float = 0.0
    wal: float = 0.0
    server_us: float = 0.0
    # What the enqueuing sessions use of it.
    clients_us: float = 0.0
    notifications: int = 0
    enqueued: int = 0
    waits: list[tuple[float, float]] = field(default_factory=list)
    done: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - the same events each time
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._ids = count(), count()
        self._due: deque[float] = deque()
        self._cores, self._queued = self.site.cores, deque[tuple[Callable[[], float], Callable[[], None]]]()
        self._lock_free_at = 0.0
        self.workers = [Worker(self.site.threads) for _ in range(self.site.workers)]
        self._per_look = self.costs.pooled if self.site.pooled else 1.0

    def run(self) -> Simulation:
        """Simulate until the time is over, and return itself."""
        for worker in self.workers:
            self._at(self._random.random(), lambda worker=worker: self._idle(worker))  # type: ignore[misc]
            if self.site.pooled:  # it never falls asleep
                worker.state, worker.pause = "awake", self.site.poll_seconds
                self._at(self._random.random(), lambda worker=worker: self._look(worker))  # type: ignore[misc]
        if self.rate:
            self._at(0.0, self._arrive)
        while self._events and self._events[0][0] <= self.seconds:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        return self

    def burst(self, at: float, runs: int) -> None:
        """Let this many runs become due at once, in one transaction."""
        self._at(at, lambda: self._serve(lambda: self.costs.enqueue_us(runs), lambda: self._commit_enqueue(runs)))

    def lose(self, at: float, workers: int, lease: float) -> None:
        """Let workers vanish; their leases end at a random time of the heartbeat's period before `lease`."""

        def vanish() -> None:
            for worker in self.workers[:workers]:
                worker.dead = True
                left = lease - self._random.random() * self.site.heartbeat_seconds
                for since in worker.runs.values():
                    self._at(self.now + left, lambda since=since: self._due.append(since))  # type: ignore[misc]

        self._at(at, vanish)

    def waits_after(self, warm_up: float) -> list[float]:
        """Return the seconds from commit to handler of the runs that became due after this time, sorted."""
        return sorted(waited for since, waited in self.waits if since >= warm_up)

    def _at(self, time: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), happen))

    def _serve(self, begin: Callable[[], float], end: Callable[[], None]) -> None:
        """Use a core: `begin` does the statement's work when a core is free, and returns its microseconds."""
        if not self._cores:
            self._queued.append((begin, end))
            return
        self._cores -= 1
        us = begin()
        self.server_us += us
        self._at(self.now + us / 1e6, lambda: self._served(end))

    def _served(self, end: Callable[[], None]) -> None:
        self._cores += 1
        if self._queued:
            self._serve(*self._queued.popleft())
        end()

    def _arrive(self) -> None:
        if self.now > self.until:
            return
        self._at(self.now + self._random.expovariate(self.rate), self._arrive)

        def begin() -> float:
            self.clients_us += self.costs.enqueue_us(1)
            return self.costs.enqueue_us(1)

        self._serve(begin, lambda: self._commit_enqueue(1))

    def _commit_enqueue(self, runs: int) -> None:
        """Commit; if a worker sleeps, notify, which holds a lock of the whole server until the commit has ended."""
        self.commits += 1
        self.enqueued += runs
        self.wal += self.costs.enqueue_wal(runs)
        notifies = any(worker.state == "asleep" and not worker.dead for worker in self.workers)
        committed = self.now + self.site.flush_us / 1e6
        if notifies:
            sender = self.costs.sender_us(len(self.workers))
            self.server_us += sender
            self.clients_us += sender
            committed = max(self.now, self._lock_free_at) + (self.site.flush_us + sender) / 1e6
            self._lock_free_at = committed
            self.notifications += 1
        self._at(committed, lambda: self._visible(runs, notifies))

    def _visible(self, runs: int, notifies: bool) -> None:
        self._due.extend([self.now] * runs)
        if notifies:
            for worker in self.workers:
                worker.heard = True
                self._at(self.now + WAKE_SECONDS, lambda worker=worker: self._look(worker))  # type: ignore[misc]

    def _idle(self, worker: Worker) -> None:
        """Tick, poll and beat as an idle worker does in a second."""
        self._at(self.now + self.site.poll_seconds, lambda: self._idle(worker))
        self.commits += self.costs.idle.commits
        self._serve(lambda: self.costs.idle.server_us, lambda: None)
        if worker.state == "asleep" and self._due:
            self._look(worker)

    def _look(self, worker: Worker) -> None:
        """Write what has ended, and claim."""
        if worker.dead:
            return
        if worker.looking:
            worker.again = True
            return
        worker.looking, worker.again = True, False
        worker.timer += 1
        taken: list[float] = []
        heard, worker.heard = worker.heard, False
        ended, worker.ended = worker.ended, 0

        def begin() -> float:
            while len(taken) < worker.free and self._due:
                taken.append(self._due.popleft())
            worker.free -= len(taken)
            size = (ended + len(taken)) / 2
            self.commits += 1
            self.wal += self.costs.exchange_wal(size)
            listener = self.costs.listener_us(len(self.workers)) if heard else 0.0
            return listener + self.costs.paced_us(size) * self._per_look

        def end() -> None:
            self.done += ended
            wrote = self.site.flush_us / 1e6 if ended or taken else 0.0
            self._at(self.now + wrote + self.costs.look_program_us / 1e6, lambda: self._looked(worker, taken, heard))

        self._serve(begin, end)

    def _looked(self, worker: Worker, taken: list[float], heard: bool) -> None:
        worker.looking = False
        for since in taken:
            self._begin(worker, since)
        if taken:
            worker.in_vain = False
            self._wake_up(worker)
        elif worker.free:
            self._found_nothing(worker, heard)
        if worker.again or worker.ended:
            self._look(worker)
        elif worker.free and worker.pause < FOREVER:
            self._at(self.now + worker.pause, lambda timer=worker.timer: self._timed(worker, timer))  # type: ignore[misc]

    def _timed(self, worker: Worker, timer: int) -> None:
        if timer == worker.timer:
            self._look(worker)

    def _begin(self, worker: Worker, since: float) -> None:
        number = next(self._ids)
        worker.runs[number] = since
        self.waits.append((since, self.now - since))
        work = self.site.seconds if self.even else self._random.expovariate(1 / self.site.seconds)

        def end() -> None:
            del worker.runs[number]
            worker.free += 1
            worker.ended += 1
            self._look(worker)

        self._at(self.now + work, end)

    def _found_nothing(self, worker: Worker, heard: bool) -> None:
        if heard and worker.state != "awake":
            worker.in_vain = True
            self._wake_up(worker)
        elif worker.state == "falling asleep":
            self._use(2, 2 * self.costs.paced_us(0))
            worker.state, worker.pause = "last look", 0.0
        elif worker.state == "last look":
            worker.state, worker.pause = "asleep", FOREVER
        elif worker.state == "awake":
            most = IN_VAIN_SECONDS if worker.in_vain else AWAKE_SECONDS
            if worker.pause < most or self.site.pooled:
                worker.pause = min(2 * worker.pause, self.site.poll_seconds)
            else:
                self._use(2, self.costs.sleep_us / 2 + self.costs.paced_us(0), self.costs.sleep_wal / 2)
                worker.state, worker.pause = "falling asleep", 0.0

    def _wake_up(self, worker: Worker) -> None:
        if worker.state != "awake":
            self._use(1, self.costs.sleep_us / 2, self.costs.sleep_wal / 2)
        worker.state, worker.pause = "awake", FIRST_PAUSE_SECONDS

    def _use(self, commits: int, us: float, wal: float = 0.0) -> None:
        """Count short statements between two looks, which hardly wait."""
        self.commits += commits
        self.server_us += us
        self.wal += wal
