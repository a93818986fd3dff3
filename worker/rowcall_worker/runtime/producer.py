"""The producer: makes one exchange after another, which writes what has ended and claims what is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import psycopg2
from psycopg2.errors import LockNotAvailable

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.logs import LogEvent, log
from rowcall.queue import Claimed, ClaimRequest, ClaimResult, Swept, exchange
from rowcall.queue.claims.lanes import Lane
from rowcall.status import Status
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.runtime.claims.lanes import Lanes
from rowcall_worker.runtime.claims.pace import Room
from rowcall_worker.runtime.claims.sleep import Sleep
from rowcall_worker.runtime.claims.stranded import Stranded
from rowcall_worker.runtime.claims.suspects import NO_ROOM, Suspects
from rowcall_worker.runtime.claims.sweeper import INTERVAL_SECONDS, Sweeper
from rowcall_worker.runtime.completer import Completer, concerns_one_run
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.handover.publisher import Publisher
from rowcall_worker.runtime.in_flight import KEPT_SECONDS, InFlight

# The longest delay of a result while others are about to join it.
FLUSH_SECONDS = 0.004
FLUSH_STEP_SECONDS = 0.0005

# `once` gives up on rows that others have locked only if they stay locked for this long; it looks this often.
LOCKED_SECONDS = 0.5
LOCKED_STEP_SECONDS = 0.05


@dataclass
class Producer:
    """One claiming thread with its connection. With two, one keeps the database busy while the other computes."""

    in_flight: InFlight
    completer: Completer
    link: Link
    worker: str
    request: ClaimRequest
    lanes: Lanes
    poll: float
    leads: bool
    once: bool
    stranded: Stranded
    # The leading producer takes suspects; the other one says whether there is other work.
    suspects: Suspects
    # Only for the leading producer of a worker that stays.
    sleep: Sleep | None = None
    # Only if a job type hands its runs over.
    publisher: Publisher | None = None

    def __post_init__(self) -> None:
        self._waker = self.in_flight.wake_ups.waker(self.leads)
        self._more = self.leads
        self._sweeper = Sweeper(min(self.poll, INTERVAL_SECONDS), self.lanes)
        self._visits: Sequence[Lane] = ()
        self._locked_since: float | None = None
        self._heard = False
        self.leases = self.request.leases

    def start(self) -> threading.Thread:
        """Start a thread that works until nothing may be claimed and nothing is in flight."""
        thread = threading.Thread(target=self.in_flight.guarded(self.run), name="producer", daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        """Wait for something to write or claim, or for the next look; then exchange."""
        while not (self.in_flight.closing and self.in_flight.empty):
            woken = self._waker.wait(self._pause())
            self._waker.clear()
            if self.leads:
                self._unclaim(self.in_flight.late())
            self._gather()
            ended = self.in_flight.collect()
            # The second producer claims only while there is plenty of work; an idle worker needs one claim per poll.
            if ended or self._more or (self.leads and (woken or not self.in_flight.closing)):
                self._try(ended)
        self.link.close()

    def _pause(self) -> float:
        """The pause until the next look; shorter while runs wait for a thread, as they may have to be unclaimed."""
        if self._more:
            return 0
        hurried = self._sweeper.hurried and not self.in_flight.closing
        sweeping = self._sweeper.due_in if hurried else self.poll
        if self._locked:
            return LOCKED_STEP_SECONDS
        pause = min(self.poll, sweeping, *((self.suspects.due_in, self.stranded.due_in) if self.leads else ()))
        pause = min(pause, self.publisher.opens_in) if self.publisher is not None else pause
        pause = min(pause, self.sleep.pause) if self.sleep is not None and not self.in_flight.closing else pause
        return pause if self.in_flight.waiting.empty() else min(pause, KEPT_SECONDS / 2)

    def _gather(self) -> None:
        """Wait a few milliseconds while many quick handlers run, so that one round trip writes all results."""
        until = elapsed() + FLUSH_SECONDS
        while self.in_flight.full and not self.in_flight.waiting.empty() and elapsed() < until:
            time.sleep(FLUSH_STEP_SECONDS)  # not woken by each result: that is what this avoids

    def _unclaim(self, late: Sequence[InFlightRun]) -> None:
        """Unclaim runs that this worker cannot begin soon, so that another can; it may claim them again later."""
        self.completer.unclaim(self.link, late, KEPT_SECONDS)
        if late:
            self._sweeper.hurry(at_once=False)

    def _try(self, ended: list[InFlightRun]) -> None:
        """Make one exchange, and mark its start and end for `Stranded`."""
        if not self.leads:
            self.stranded.other.step()
        self._make_exchange(ended)
        if not self.leads:
            self.stranded.other.step()

    def _make_exchange(self, ended: list[InFlightRun]) -> None:
        """Make an exchange; if the database is unreachable, keep the results and wait."""
        reserved = self.in_flight.reserve()
        try:
            result, asked_at, room = self._exchange(ended, reserved)
        except CONNECTION_ERRORS as error:
            self.in_flight.accept(sum(reserved), [])
            self.completer.keep(ended)
            if self.leads:
                self.suspects.lost()
            if self.leads or any(reserved):
                self.stranded.lost(self._visits)
            self._more = False
            time.sleep(self.link.lost(error))  # this thread has nothing else to do
            self._waker.set()
            return
        if ended or any(reserved):
            self.link.works()  # otherwise no statement was sent
        self._accept(sum(reserved), result.claimed, asked_at)
        for run_id, status in result.expired.items():
            # Only a run that no consumer has begun is queued.
            lost = status is Status.QUEUED
            log().warning(LogEvent.MESSAGE_LOST if lost else LogEvent.LEASE_EXPIRED, run_id=run_id, status=status)
            self.suspects.hurry()
        sweeping = self.leads and self._sweeper.first_lap
        self._more = len(result.claimed) == sum(room) > 0 or bool(result.expired) or result.contended or sweeping
        self._more = self._more or (room.slots > 0 and not result.claimed and self.lanes.unvisited)
        if result.claimed:
            self._locked_since = None
        elif not self._more:
            self._nothing_found(room, asked_at)
        self._sleep_or_wake(bool(result.claimed), room)

    def _accept(self, reserved: int, claimed: Sequence[Claimed], asked_at: float) -> None:
        now = elapsed()
        runs = [InFlightRun(self.worker, run, asked_at + self.leases[run.job_type], now) for run in claimed]
        self.in_flight.accept(reserved, runs)

    def _sleep_or_wake(self, claimed: bool, room: Room) -> None:
        """Fall asleep if nothing is left to do; wake up if something was found.

        A notification counts until this decides, because the first look after it may only lead to another look.
        """
        if self.sleep is None:
            self._heard = False
            return
        try:
            if claimed:
                self._heard = False
                self.sleep.found(self.link.get())
            elif not room.slots:
                self.sleep.busy()
            elif not self._more:
                heard, self._heard = self._heard, False
                self._poll_or_sleep(self.sleep, heard)
        except CONNECTION_ERRORS as error:
            self.link.lost(error)
            self.sleep.busy()

    def _poll_or_sleep(self, sleep: Sleep, heard: bool) -> None:
        """Let the worker poll for a place under a limit, or fall asleep step by step."""
        if self.request.limited is not None:
            sleep.waits_for_a_place(self.link.get())
        elif sleep.nothing(self.link.get(), heard):
            self._sweeper.hurry(at_once=True)

    def _nothing_found(self, room: Room, asked_at: float) -> None:
        """Decide what to do when a claim found nothing: look again, sweep, or report that all is quiet."""
        if self._heard:
            self._sweeper.hurry(at_once=False)
        if room.slots and not self.once:
            self._more = not self.in_flight.look_found_nothing(asked_at)
        elif room.slots and not self.leads:
            self.in_flight.wake_ups.wake()  # the leading producer knows when the last sweep was
        elif room.slots and not self._waits_for_locks():
            # `once` ends only after a lap that began when nothing was left, and when no suspect is left either.
            if not self.in_flight.look_found_nothing(min(self._sweeper.lap_began_at, self.suspects.none_since)):
                self._sweeper.hurry(at_once=self.in_flight.empty)
                self.suspects.hurry()
        elif room.ahead:
            # The claim asked only for quick runs, so it says nothing about others; there may be a slot for them now.
            self._more = self.in_flight.empty

    @property
    def _locked(self) -> bool:
        return self._locked_since is not None and elapsed() < self._locked_since + LOCKED_SECONDS

    def _waits_for_locks(self) -> bool:
        """Return whether to wait for due runs that could not be claimed, perhaps because their rows are locked."""
        self._locked_since = (self._locked_since or elapsed()) if self.lanes.due else None
        return self._locked

    def _look(self, connection: PgConnection, room: Room) -> tuple[Swept, Room]:
        """Do what ordinary claims do not: sweep, and claim a suspect; return the room that is left for claims."""
        if self.in_flight.closing:
            return Swept(), NO_ROOM  # a claim would take the runs that are being released
        if not self.leads:
            return Swept(), room
        self.stranded.give_back(connection, self.worker)
        # Before the claim, which takes what the sweep found.
        swept = self._sweeper.sweep(connection, self.request)
        if swept.expired:
            self.suspects.hurry()
        asked_at = elapsed()
        claimed, room = self.suspects.claim(connection, self.worker, self.request, room)
        self._accept(0, claimed, asked_at)
        return swept, room

    def _open_or_close(self, publisher: Publisher) -> None:
        """Claim no run whose broker has a pause; after the pause, look for those that have been due meanwhile."""
        leases = publisher.open()
        if self.leads and leases.keys() - self.request.leases.keys():  # the other producer does not sweep
            self._sweeper.hurry(at_once=True)
        self.request = replace(self.request, leases=leases)

    def _exchange(self, ended: list[InFlightRun], room: Room) -> tuple[ClaimResult, float, Room]:
        """Write the ends of attempts, and claim as many runs as there is room for.

        Return the result, the earliest time at which the claim can have begun, and the room.
        """
        connection = self.link.get()
        # Notifications from now on are for the next look.
        self._heard = self.leads and (self.in_flight.wake_ups.heard() or self._heard)
        succeeded = self.completer.write_apart(connection, ended)
        if succeeded and self.leads and self.suspects.due:
            # Otherwise the next claim, which is sent together with these successes, would take the slots that they
            # free under a limit.
            self._send(connection, ended, succeeded, self.request)
            succeeded = []
        if self.publisher is not None:
            self._open_or_close(self.publisher)
        swept, room = self._look(connection, room)
        quick_types = self.in_flight.quick_types() if room.ahead else ()
        self._visits = visits = self.lanes.visits()
        request = replace(self.request, limit=room.slots, ahead=room.ahead, quick_types=quick_types, lanes=visits)
        result, asked_at = self._send(connection, ended, succeeded, request)
        if room.slots:
            self.suspects.others(bool(result.claimed))
        if any(room):
            self.lanes.claimed(visits, result, full=len(result.claimed) == sum(room))
        self.request = replace(self.request, limited=result.limited)
        return result | ClaimResult([], swept.expired), asked_at, room

    def _send(
        self, connection: PgConnection, ended: list[InFlightRun], succeeded: list[InFlightRun], request: ClaimRequest
    ) -> tuple[ClaimResult, float]:
        """Write successes and claim; return the moment before which no new lease began."""
        while True:
            asked_at = elapsed()
            try:
                result = exchange(connection, self.worker, self.completer.successes(succeeded), request)
            except LockNotAvailable:
                free = self.completer.put_off_locked(connection, ended, succeeded)
                if len(free) == len(succeeded):
                    raise  # something else is locked, such as a table: retry after a pause
                succeeded = free
            except psycopg2.Error as error:
                if not succeeded or not concerns_one_run(error):
                    raise
                self.completer.write_one_by_one(connection, ended, succeeded)
                succeeded = []
            else:
                self.completer.written(succeeded, result.finished)
                return result, asked_at
