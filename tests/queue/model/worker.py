"""A worker claims, and its claim is the sweep: it ends the leases that ran out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.queue import Claimed, ClaimRequest, ClaimResult, Done, Failure
from rowcall.status import BY_EVENT, LIVE, Event, Status
from tests.queue.model.owner import Lease, succeed
from tests.queue.model.run import Run
from tests.queue.model.world import World


def claim(world: World, worker: str, wanted: ClaimRequest, now: datetime) -> ClaimResult:
    """Due runs of known types with attempts left, of queues that are not paused; and leases that ran out."""
    taken, expired = [], {}
    for run in meet(world, wanted, now):
        if run.status is Status.RUNNING:
            expired[run.id] = expire(world, run, now)
            continue
        until = now + timedelta(seconds=wanted.leases[run.job_type])
        run.becomes(Event.CLAIM, Status.RUNNING, now, locked_by=worker, locked_until=until, started_at=now)
        run.lease_no += 1
        run.attempts += 1
        run.progress = None
        taken.append(run)
    taken.sort(key=lambda run: (run.priority, run.run_at, run.id))
    claimed = [
        Claimed(run.id, run.lease_no, run.job_type, dict(run.payload), run.attempts, run.max_attempts, None)
        for run in taken
    ]
    return ClaimResult(claimed, expired)


def meet(world: World, wanted: ClaimRequest, now: datetime) -> list[Run]:
    """The urgent first; of equally urgent queues the one that has waited longest; in a queue the longest due.

    What was committed when the claim began counts, and what somebody else has locked is passed over.
    """
    view = world.seen or world
    lanes: dict[tuple[int, str], list[Run]] = {}
    for run in sorted(view.runs.values(), key=lambda run: (run.run_at, run.id)):
        if run.status in LIVE:
            lanes.setdefault((run.priority, run.queue), []).append(run)
    met = [
        world.runs[run.id]
        for (_, name), lane in sorted(lanes.items(), key=lambda lane: (lane[0][0], lane[1][0].run_at))
        if name not in view.paused and (wanted.queues is None or name in wanted.queues)
        for run in lane
        if run.id not in world.locked and run.run_at <= now and (run.lease_ran_out(now) or claimable(run, wanted))
    ]
    return met[: wanted.limit]


def claimable(run: Run, wanted: ClaimRequest) -> bool:
    """It waits, this worker knows its type, and it has an attempt left."""
    return run.status in BY_EVENT[Event.CLAIM].sources and run.job_type in wanted.leases and run.has_attempts_left


def expire(world: World, run: Run, now: datetime) -> Status:
    """Cancelled if that was asked for, dead at the last attempt, else due at once."""
    said = f"the lease of {run.locked_by} ran out: the worker died, froze, or lost the database"
    failure = Failure(said, "LeaseExpired")
    world.remember(Event.EXPIRE, run, failure, now)
    run.shows(failure, now)
    if run.was_asked_to_stop:
        run.becomes(Event.EXPIRE, Status.CANCELLED, now)
    elif not run.has_attempts_left:
        run.becomes(Event.EXPIRE, Status.DEAD, now)
    else:
        run.becomes(Event.EXPIRE, Status.FAILED, now, run_at=now)
    return run.status


@dataclass(frozen=True)
class Claiming:
    """Claim what is due."""

    actor: str
    wanted: ClaimRequest

    def perform(self, connection: PgConnection) -> ClaimResult:
        """What was met."""
        return queue.claim(connection, self.actor, self.wanted)

    def expect(self, world: World, now: datetime, _answer: object) -> ClaimResult:
        """What is to be met."""
        return claim(world, self.actor, self.wanted, now)

    def locks(self) -> set[int]:
        """None but those it takes."""
        return set()


@dataclass(frozen=True)
class FinishingAndClaiming:
    """Write successes and claim what is due, in one statement."""

    actor: str
    wanted: ClaimRequest
    leases: tuple[Lease, ...]

    def perform(self, connection: PgConnection) -> tuple[set[int], ClaimResult]:
        """Whose success was written, and what was met."""
        done = [Done(lease.run_id, lease.lease_no, '{"done": true}') for lease in self.leases]
        return queue.finish_and_claim(connection, self.actor, done, self.wanted)

    def expect(self, world: World, now: datetime, _answer: object) -> tuple[set[int], ClaimResult]:
        """As one after the other, but both see the runs as they were before.

        The claim leaves the leases alone of which the worker sends results, whether or not they are still its own.
        """
        before = world.seen or world.copy()
        sent = {lease.run_id for lease in self.leases if before.runs[lease.run_id].status is Status.RUNNING}
        finished = {lease.run_id for lease in self.leases if succeed(world, lease, {"done": True}, now)}
        world.seen, seen = before, world.seen
        world.locked, locked = world.locked | sent, world.locked
        met = claim(world, self.actor, self.wanted, now)
        world.seen, world.locked = seen, locked
        return finished, met

    def locks(self) -> set[int]:
        """None but those it changes."""
        return set()


@dataclass(frozen=True)
class Sweeping:
    """End one lease that has run out, as it was seen."""

    run_id: int
    lease_no: int
    actor: str

    def perform(self, connection: PgConnection) -> bool:
        """Whether it was ended."""
        return queue.expire(connection, self.run_id, self.lease_no)

    def expect(self, world: World, now: datetime, _answer: object) -> bool:
        """It has run out, and is still the one that was seen."""
        run = world.admits(
            Event.EXPIRE, self.run_id, lambda run: run.lease_no == self.lease_no and run.lease_ran_out(now)
        )
        if run:
            expire(world, run, now)
        return run is not None

    def locks(self) -> set[int]:
        """None but the one it ends."""
        return set()
