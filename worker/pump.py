"""The pump: one statement after another that writes what has ended and claims what is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import psycopg2

from shared.clock import elapsed
from shared.database import PgConnection
from shared.errors import Permanent
from shared.job_types import Catalogue
from shared.logs import LogEvent, log
from shared.queue import (
    Done,
    Ending,
    Limited,
    Met,
    Wanted,
    claim,
    claim_limited,
    finish_and_claim,
    give_up,
    hand_back,
    release,
    succeed,
)
from shared.status import Status
from worker.connection import LOST, Link
from worker.hands import Hands, HeldRun, Outcome
from worker.outcomes import finish_unsuccessful, named
from worker.verdict import failure_of

NOTHING = Met([], {})


@dataclass
class Pump:
    """One claiming thread with its connection.  Two of them keep the database busy while the other one computes."""

    hands: Hands
    link: Link
    worker: str
    catalogue: Catalogue
    wanted: Wanted
    poll: float
    leads: bool

    def __post_init__(self) -> None:
        self._waker = self.hands.waker()
        self._more = self.leads
        self._limited: Limited | None = None
        self._contended = False

    def start(self) -> threading.Thread:
        """Pump on a thread of its own until the hands are closed and empty."""
        thread = threading.Thread(target=self.hands.guarded(self.run), name="pump", daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        """Wait for something to write, to claim, or for the time of the next look; then exchange."""
        while not (self.hands.closing and self.hands.empty):
            woken = self._waker.wait(0 if self._more else self.poll)
            self._waker.clear()
            self.hands.gather()
            outcomes = self.hands.collect()
            # The second pump looks for work only while there is plenty: idle, one look a poll is enough.
            if outcomes or self._more or (self.leads and (woken or not self.hands.closing)):
                self._try(outcomes)
        self.link.close()

    def _try(self, outcomes: Sequence[Outcome]) -> None:
        """Exchange; without a database, keep what has ended and wait."""
        reserved = self.hands.reserve()
        try:
            met, asked_at = self._exchange(outcomes, reserved)
        except LOST as error:
            self.hands.accept(reserved, [])
            # What was written before the loss is no longer in hand.
            self.hands.put_back([outcome for outcome in outcomes if outcome.run.key in self.hands.held])
            self._more = False
            time.sleep(self.link.lost(error))  # there is nothing this thread could do meanwhile
            self._waker.set()
            return
        self.link.works()
        runs = [HeldRun(run, asked_at + self.wanted.leases[run.job_type]) for run in met.claimed]
        self.hands.accept(reserved, runs)
        for run_id, status in met.expired.items():
            log().warning(LogEvent.LEASE_EXPIRED, run_id=run_id, status=status)
        self._more = len(met.claimed) == reserved > 0 or bool(met.expired) or self._contended
        if reserved and not (met.claimed or met.expired or self._contended):
            self._more = not self.hands.look_found_nothing(asked_at)

    def _exchange(self, outcomes: Sequence[Outcome], room: int) -> tuple[Met, float]:
        """Write the outcomes and claim for the room there is; what was met, and when the leases began at the latest."""
        connection = self.link.get()
        self._contended = False
        finished = [outcome for outcome in outcomes if outcome.finished]
        self.hands.written(finished, [Status.SUCCEEDED] * len(finished))
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
        self.hands.written(successes, [Status.SUCCEEDED] * len(written))
        if not together and room:
            met = self._claim(connection, room)
        elif met.limited:
            met = _both(met, self._claim_limited(connection, room - len(met.claimed)))
        if room:
            self._limited = met.limited
        return met, asked_at

    def _claim(self, connection: PgConnection, room: int) -> Met:
        """Claim from queues without and with a limit, in the order that the last look has told."""
        if self._limited is Limited.FIRST:
            limited = self._claim_limited(connection, room)
            return _both(limited, claim(connection, self.worker, self._wanted(room - len(limited.claimed))))
        met = claim(connection, self.worker, self._wanted(room))
        return _both(met, self._claim_limited(connection, room - len(met.claimed))) if met.limited else met

    def _claim_limited(self, connection: PgConnection, room: int) -> Met:
        if not room:
            return NOTHING
        met, contended = claim_limited(connection, self.worker, self._wanted(room))
        self._contended = contended
        return met

    def _wanted(self, room: int) -> Wanted:
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
            self.hands.written([outcome], [status] if status else [])

    def ending(self, run: HeldRun) -> Ending:
        """The attempt, as the statements that end it name it."""
        claimed = run.claimed
        return Ending(self.worker, claimed.run_id, claimed.lease_no, claimed.attempt)

    def hand_back(self, runs: Sequence[HeldRun]) -> None:
        """Give back what was claimed and not begun; without a database the leases run out by themselves."""
        if not runs:
            return
        try:
            hand_back(self.link.get(), self.worker, [run.key for run in runs])
        except LOST as error:
            self.link.lost(error)
        self.hands.drop(runs)

    def release(self, runs: Sequence[HeldRun], reason: str) -> None:
        """Give back what was begun and will not be finished here."""
        try:
            for run in runs:
                if release(self.link.get(), self.ending(run), reason, run.forensics):
                    log().info(LogEvent.RUN_RELEASED, **named(run))
        except LOST as error:
            self.link.lost(error)
        self.hands.drop(runs)


def _both(one: Met, other: Met) -> Met:
    """What two claims met."""
    return Met(one.claimed + other.claimed, one.expired | other.expired, one.limited or other.limited)
