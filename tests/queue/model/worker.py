"""A worker's claim, which also ends expired leases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.queue import Claimed, ClaimRequest, ClaimResult, Done, Failure, Lease, Suspect
from rowcall.status import BY_EVENT, LIVE, Event, Status
from tests.queue.model.owner import MESSAGE, succeed
from tests.queue.model.run import Run
from tests.queue.model.world import World


def claim(world: World, worker: str, request: ClaimRequest, now: datetime) -> ClaimResult:
    """Claim due runs of known types with attempts left, from queues that are not paused; and end expired leases."""
    taken, expired = [], {}
    for run in due(world, request, now):
        if run.status is Status.RUNNING:
            expired[run.id] = expire(world, run, now)
        else:
            taken.append(run)
    taken.sort(key=lambda run: (run.priority, run.run_at, run.id))
    return ClaimResult([take(run, worker, request, now) for run in taken], expired)


def take(run: Run, worker: str, request: ClaimRequest, now: datetime) -> Claimed:
    """Start the next attempt, under a lease of this worker."""
    until = now + timedelta(seconds=request.leases[run.job_type])
    run.becomes(Event.CLAIM, Status.RUNNING, now, locked_by=worker, locked_until=until, started_at=now)
    run.lease_no += 1
    run.attempts += 1
    run.progress = None
    named = run.id, run.lease_no, run.job_type, dict(run.payload), run.attempts, run.max_attempts
    waited = now.timestamp() - run.run_at.timestamp()
    return Claimed(*named, None, run.suspect, waited)


def due(world: World, request: ClaimRequest, now: datetime) -> list[Run]:
    """Return due runs: urgent ones first, then the queue that has waited longest, and in a queue the longest due.

    Runs count if they were committed when the claim started, and locked runs are skipped.
    """
    view = world.seen or world
    lanes: dict[tuple[int, str], list[Run]] = {}
    for run in sorted(view.runs.values(), key=lambda run: (run.run_at, run.id)):
        if run.status in LIVE:
            lanes.setdefault((run.priority, run.queue), []).append(run)
    found = [
        world.runs[run.id]
        for (_, name), lane in sorted(lanes.items(), key=lambda lane: (lane[0][0], lane[1][0].run_at))
        if name not in view.paused and (request.queues is None or name in request.queues)
        for run in lane
        if run.id not in world.locked
        and run.run_at <= now
        and (run.lease_expired(now) or (claimable(run, request) and not run.suspect))
    ]
    return found[: request.limit]


def claimable(run: Run, request: ClaimRequest) -> bool:
    """Whether it waits, this worker knows its type, and it has an attempt left."""
    return run.status in BY_EVENT[Event.CLAIM].sources and run.job_type in request.leases and run.has_attempts_left


def expire(world: World, run: Run, now: datetime) -> Status:
    """Cancelled if that was requested, dead after the last attempt, or else due at once; unbegun runs lose nothing."""
    said = f"the lease of {run.locked_by} expired: the worker died, froze, or lost the database"
    failure, unbegun = Failure(said, "LeaseExpired"), run.locked_by == MESSAGE
    if unbegun:
        failure = Failure("no consumer began the run: its message was lost, or waits for too long", "MessageLost")
    world.remember(Event.EXPIRE, run, failure, now)
    run.shows(failure, now)
    lost = {"attempts": run.attempts - 1, "suspect": run.suspect} if unbegun else {}
    if run.was_asked_to_stop:
        run.becomes(Event.EXPIRE, Status.CANCELLED, now, **lost)
    elif unbegun:
        run.becomes(Event.EXPIRE, Status.QUEUED, now, **lost)
    elif not run.has_attempts_left:
        run.becomes(Event.EXPIRE, Status.DEAD, now)
    else:
        run.becomes(Event.EXPIRE, Status.FAILED, now, run_at=now)
    return run.status


@dataclass(frozen=True)
class Claiming:
    """Claim due runs."""

    actor: str
    request: ClaimRequest

    def perform(self, connection: PgConnection) -> ClaimResult:
        """Return what the claim found."""
        return without_lanes(queue.claim(connection, self.actor, self.request))

    def expect(self, world: World, now: datetime, _answer: object) -> ClaimResult:
        """Return what it should find."""
        return claim(world, self.actor, self.request, now)

    def locks(self) -> set[int]:
        """Return nothing: it locks only runs that it takes."""
        return set()


@dataclass(frozen=True)
class ClaimingSuspect:
    """Claim a run whose lease expired; one that cost two leases only if the worker has no other run."""

    actor: str
    request: ClaimRequest
    alone: bool

    def perform(self, connection: PgConnection) -> Suspect:
        """Return what the claim found."""
        return queue.claim_suspect(connection, self.actor, self.request, self.alone)

    def expect(self, world: World, now: datetime, _answer: object) -> Suspect:
        """Expect the longest due of the most urgent suspects of all queues, or whether one waits to run alone."""
        suspects = [
            run
            for run in world.runs.values()
            if run.suspect and run.run_at <= now and claimable(run, self.request) and run.queue not in world.paused
            if self.request.queues is None or run.queue in self.request.queues
        ]
        free = [run for run in suspects if self.alone or run.suspect < 2]
        urgent = [min(of, key=lambda run: (run.priority, run.run_at, run.id)) for of in by_queue(free)]
        if not urgent:
            return Suspect(None, bool(suspects))
        first = min(urgent, key=lambda run: (run.run_at, run.id))
        return Suspect(take(first, self.actor, self.request, now), False)

    def locks(self) -> set[int]:
        """Return nothing: it locks only the run that it takes."""
        return set()


def without_lanes(result: ClaimResult) -> ClaimResult:
    """Return the result without the lanes, which the model does not contain."""
    return replace(result, heads={}, taken=Counter())


def by_queue(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs of each queue."""
    return [[run for run in runs if run.queue == name] for name in sorted({run.queue for run in runs})]


@dataclass(frozen=True)
class FinishingAndClaiming:
    """Write successes and claim due runs, in one statement."""

    actor: str
    request: ClaimRequest
    leases: tuple[Lease, ...]

    def perform(self, connection: PgConnection) -> ClaimResult:
        """Return the successes that were written and the runs that were claimed."""
        done = [Done(lease, '{"done": true}') for lease in self.leases]
        return without_lanes(queue.exchange(connection, self.actor, done, self.request))

    def expect(self, world: World, now: datetime, _answer: object) -> ClaimResult:
        """Expect both, one after the other, but both see the runs as they were before.

        The claim does not touch leases for which the worker sends a result, even if they are no longer its own.
        """
        before = world.seen or world.copy()
        sent = {lease.run_id for lease in self.leases if before.runs[lease.run_id].status is Status.RUNNING}
        finished = {lease.run_id for lease in self.leases if succeed(world, lease, {"done": True}, now)}
        world.seen, seen = before, world.seen
        world.locked, locked = world.locked | sent, world.locked
        found = claim(world, self.actor, self.request, now)
        world.seen, world.locked = seen, locked
        return replace(found, finished=finished)

    def locks(self) -> set[int]:
        """Return nothing: it locks only runs that it changes."""
        return set()


@dataclass(frozen=True)
class Sweeping:
    """End one expired lease, if it is still the one that was seen."""

    run_id: int
    lease_no: int
    actor: str

    def perform(self, connection: PgConnection) -> bool:
        """Whether it was ended."""
        return queue.expire(connection, self.run_id, self.lease_no)

    def expect(self, world: World, now: datetime, _answer: object) -> bool:
        """Expect an end if it has expired, and is still the one that was seen."""
        run = world.admits(
            Event.EXPIRE, self.run_id, lambda run: run.lease_no == self.lease_no and run.lease_expired(now)
        )
        if run:
            expire(world, run, now)
        return run is not None

    def locks(self) -> set[int]:
        """Return nothing: it locks only the run that it changes."""
        return set()
