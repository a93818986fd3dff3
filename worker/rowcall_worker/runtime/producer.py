"""The pump: one statement after another that writes what has ended and claims what is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import psycopg2

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.errors import Permanent
from rowcall.base.logs import LogEvent, log
from rowcall.job_types import Catalogue
from rowcall.queue import (
    ClaimRequest,
    ClaimResult,
    Done,
    Ending,
    Limited,
    claim,
    claim_limited,
    finish_and_claim,
    give_up,
    release,
    succeed,
    unclaim,
)
from rowcall.status import Status
from rowcall_worker.attempt.result import failure_of
from rowcall_worker.runtime.completer import finish_unsuccessful, named
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.in_flight import InFlight, InFlightRun, Outcome

NOTHING = ClaimResult([], {})


@dataclass
class Producer:
    """One claiming thread with its connection.  Two of them keep the database busy while the other one computes."""

    in_flight: InFlight
    link: Link
    worker: str
    catalogue: Catalogue
    wanted: ClaimRequest
    poll: float
    leads: bool

    def __post_init__(self) -> None:
        self._waker = self.in_flight.waker()
        self._more = self.leads
        self._limited: Limited | None = None
        self._contended = False

    def start(self) -> threading.Thread:
        """Pump on a thread of its own until the hands are closed and empty."""
        thread = threading.Thread(target=self.in_flight.guarded(self.run), name="pump", daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        """Wait for something to write, to claim, or for the time of the next look; then exchange."""
        while not (self.in_flight.closing and self.in_flight.empty):
            woken = self._waker.wait(0 if self._more else self.poll)
            self._waker.clear()
            self.in_flight.gather()
            outcomes = self.in_flight.collect()
            # The second pump looks for work only while there is plenty: idle, one look a poll is enough.
            if outcomes or self._more or (self.leads and (woken or not self.in_flight.closing)):
                self._try(outcomes)
        self.link.close()

    def _try(self, outcomes: Sequence[Outcome]) -> None:
        """Exchange; without a database, keep what has ended and wait."""
        reserved = self.in_flight.reserve()
        try:
            met, asked_at = self._exchange(outcomes, reserved)
        except CONNECTION_ERRORS as error:
            self.in_flight.accept(reserved, [])
            # What was written before the loss is no longer in hand.
            self.in_flight.put_back([outcome for outcome in outcomes if outcome.run.key in self.in_flight.held])
            self._more = False
            time.sleep(self.link.lost(error))  # there is nothing this thread could do meanwhile
            self._waker.set()
            return
        self.link.works()
        runs = [InFlightRun(run, asked_at + self.wanted.leases[run.job_type]) for run in met.claimed]
        self.in_flight.accept(reserved, runs)
        for run_id, status in met.expired.items():
            log().warning(LogEvent.LEASE_EXPIRED, run_id=run_id, status=status)
        self._more = len(met.claimed) == reserved > 0 or bool(met.expired) or self._contended
        if reserved and not (met.claimed or met.expired or self._contended):
            self._more = not self.in_flight.look_found_nothing(asked_at)

    def _exchange(self, outcomes: Sequence[Outcome], room: int) -> tuple[ClaimResult, float]:
        """Write the outcomes and claim for the room there is; what was met, and when the leases began at the latest."""
        connection = self.link.get()
        self._contended = False
        finished = [outcome for outcome in outcomes if outcome.finished]
        self.in_flight.written(finished, [Status.SUCCEEDED] * len(finished))
        successes = [outcome for outcome in outcomes if not (outcome.finished or outcome.verdict)]
        self._write_unsuccessful(connection, outcomes)
        asked_at = elapsed()
        done = [Done(*outcome.run.key, outcome.result) for outcome in successes]
        together = bool(done and room) and self._limited is not Limited.FIRST
        if together:
            written, met = finish_and_claim(connection, self.worker, done, self._wanted(room))
        else:
            written, met = succeed(connection, self.worker, done) if done else set(), NOTHING
        for outcome in successes:
            if outcome.run.claimed.run_id not in written:
                log().warning(LogEvent.LEASE_LOST, **named(outcome.run))
        self.in_flight.written(successes, [Status.SUCCEEDED] * len(written))
        if not together and room:
            met = self._claim(connection, room)
        elif met.limited:
            met = _both(met, self._claim_limited(connection, room - len(met.claimed)))
        if room:
            self._limited = met.limited
        return met, asked_at

    def _claim(self, connection: PgConnection, room: int) -> ClaimResult:
        """Claim from queues without and with a limit, in the order that the last look has told."""
        if self._limited is Limited.FIRST:
            limited = self._claim_limited(connection, room)
            return _both(limited, claim(connection, self.worker, self._wanted(room - len(limited.claimed))))
        met = claim(connection, self.worker, self._wanted(room))
        return _both(met, self._claim_limited(connection, room - len(met.claimed))) if met.limited else met

    def _claim_limited(self, connection: PgConnection, room: int) -> ClaimResult:
        if not room:
            return NOTHING
        met, contended = claim_limited(connection, self.worker, self._wanted(room))
        self._contended = contended
        return met

    def _wanted(self, room: int) -> ClaimRequest:
        return replace(self.wanted, limit=room)

    def _write_unsuccessful(self, connection: PgConnection, outcomes: Sequence[Outcome]) -> None:
        """Write each in a statement of its own; one that the database refuses must not hold up the others."""
        for outcome in outcomes:
            if outcome.verdict is None:
                continue
            try:
                status = finish_unsuccessful(connection, self.worker, self.catalogue, outcome.run, outcome.verdict)
            except psycopg2.DataError as error:
                status = give_up(connection, self.ending(outcome.run), failure_of(Permanent(str(error))))
            self.in_flight.written([outcome], [status] if status else [])

    def ending(self, run: InFlightRun) -> Ending:
        """The attempt, as the statements that end it name it."""
        claimed = run.claimed
        return Ending(self.worker, claimed.run_id, claimed.lease_no, claimed.attempt)

    def unclaim(self, runs: Sequence[InFlightRun]) -> None:
        """Give back what was claimed and not begun; without a database the leases run out by themselves."""
        if not runs:
            return
        try:
            unclaim(self.link.get(), self.worker, [run.key for run in runs])
        except CONNECTION_ERRORS as error:
            self.link.lost(error)
        self.in_flight.drop(runs)

    def release(self, runs: Sequence[InFlightRun], reason: str) -> None:
        """Give back what was begun and will not be finished here."""
        try:
            for run in runs:
                if release(self.link.get(), self.ending(run), reason, run.forensics):
                    log().info(LogEvent.RUN_RELEASED, **named(run))
        except CONNECTION_ERRORS as error:
            self.link.lost(error)
        self.in_flight.drop(runs)


def _both(one: ClaimResult, other: ClaimResult) -> ClaimResult:
    """What two claims met."""
    return ClaimResult(one.claimed + other.claimed, one.expired | other.expired, one.limited or other.limited)
