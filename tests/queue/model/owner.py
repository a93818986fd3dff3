"""Only the owner of a lease can write: the queue refuses a worker that wrongly believes that it has a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.queue import Done, Failure, Lease, LeaseRenewal
from rowcall.status import Event, Status
from tests.queue.model.run import Run
from tests.queue.model.world import World

WORKERS = ("worker-1", "worker-2")

# Has the lease of a run that was handed over, and that nobody has begun.
MESSAGE = "celery mail shop.tasks.send"

FAILURE = Failure("it broke", "ValueError", stack="Traceback: it broke")
HOPELESS = Failure("it cannot work", "Permanent", permanent=True)
RELEASED = Failure("stopping", "Released")
SNOOZED = Failure("not yet", "Snooze")
STOPPED = Failure("cancelled on request", "Cancelled")
MUCH_LATER = datetime(2100, 1, 1, tzinfo=UTC)


def wrong(lease: Lease) -> list[Lease]:
    """Return leases without a right to the run, each of which differs from the true one in one value."""
    return [
        lease._replace(lease_no=lease.lease_no - 1),
        lease._replace(lease_no=lease.lease_no + 1),
        lease._replace(worker=WORKERS[lease.worker == WORKERS[0]]),
    ]


def owned(world: World, event: Event, lease: Lease, guard: Callable[[Run], bool] = lambda run: True) -> Run | None:
    """The fence: this lease, of this worker, on this run, while it is running."""

    def is_the_owners(run: Run) -> bool:
        return run.lease_no == lease.lease_no and run.locked_by == lease.worker and guard(run)

    return world.admits(event, lease.run_id, is_the_owners)


def heartbeat(world: World, lease: Lease, seconds: float, now: datetime) -> LeaseRenewal | None:
    """Extend the lease, never shorten it, skip a locked row; return whether to cancel, or None if the lease is lost."""
    if lease.run_id in world.locked:
        seen = owned(world.seen or world, Event.HEARTBEAT, lease)
        return LeaseRenewal(False, seen.was_asked_to_stop) if seen else None
    run = owned(world, Event.HEARTBEAT, lease)
    if run is None:
        return None
    assert run.locked_until
    until = max(run.locked_until, now + timedelta(seconds=seconds))
    run.becomes(Event.HEARTBEAT, Status.RUNNING, now, locked_until=until)
    return LeaseRenewal(True, run.was_asked_to_stop)


def succeed(world: World, lease: Lease, result: Any, now: datetime) -> bool:
    """Final, with its result.  Nothing goes into the history."""
    run = owned(world, Event.SUCCEED, lease)
    if run:
        run.becomes(Event.SUCCEED, Status.SUCCEEDED, now, result=result)
    return run is not None


def fail(world: World, lease: Lease, delay: float, now: datetime) -> Status | None:
    """Only while another attempt is left, which follows after the delay."""
    run = owned(world, Event.FAIL, lease, lambda run: run.has_attempts_left)
    if run is None:
        return None
    later = run.run_at if run.was_asked_to_stop else now + timedelta(seconds=delay)
    return ends(world, Event.FAIL, run, FAILURE, now, Status.FAILED, run_at=later)


def give_up(world: World, lease: Lease, now: datetime) -> Status | None:
    """Final, however many attempts are left."""
    run = owned(world, Event.GIVE_UP, lease)
    return ends(world, Event.GIVE_UP, run, HOPELESS, now, Status.DEAD) if run else None


def release(world: World, lease: Lease, now: datetime) -> Status | None:
    """Queued again, and the attempt counts; dead if it was the last one."""
    run = owned(world, Event.RELEASE, lease)
    if run is None:
        return None
    return ends(world, Event.RELEASE, run, RELEASED, now, Status.QUEUED if run.has_attempts_left else Status.DEAD)


def ends(
    world: World, event: Event, run: Run, failure: Failure, now: datetime, status: Status, **changes: Any
) -> Status:
    """End the attempt as failed: it goes into the history, and the run shows its error."""
    world.remember(event, run, failure, now)
    run.shows(failure, now)
    run.becomes(event, unless_asked(run, status), now, **changes)
    return run.status


def unless_asked(run: Run, status: Status) -> Status:
    """Return cancelled for a run that was asked to cancel, however its attempt ends, or else this status."""
    return Status.CANCELLED if run.was_asked_to_stop else status


def unclaim(world: World, lease: Lease, now: datetime) -> bool:
    """As if it had not been claimed, except for the lease number; without history, and a locked row is skipped."""
    run = None if lease.run_id in world.locked else owned(world, Event.UNCLAIM, lease)
    if run:
        world.woken = True
        run.becomes(Event.UNCLAIM, unless_asked(run, Status.QUEUED), now, attempts=run.attempts - 1)
    return run is not None


def snooze(world: World, lease: Lease, now: datetime) -> Status | None:
    """Due again when the handler asked for; the attempt does not count, and the run shows no error."""
    run = owned(world, Event.SNOOZE, lease)
    if run is None:
        return None
    world.forget_last_snooze(run)
    world.remember(Event.SNOOZE, run, SNOOZED, now)
    later = run.run_at if run.was_asked_to_stop else MUCH_LATER
    run.becomes(Event.SNOOZE, unless_asked(run, Status.QUEUED), now, run_at=later, attempts=run.attempts - 1)
    return run.status


def cancelled(world: World, lease: Lease, now: datetime) -> Status | None:
    """Only if it was requested; the run shows no error."""
    run = owned(world, Event.CANCELLED, lease, lambda run: run.was_asked_to_stop)
    if run is None:
        return None
    world.remember(Event.CANCELLED, run, STOPPED, now)
    run.becomes(Event.CANCELLED, Status.CANCELLED, now)
    return run.status


@dataclass(frozen=True)
class Writing:
    """One of the owner's events, under one lease or, where the queue takes many at once, under several."""

    event: Event
    leases: tuple[Lease, ...]
    seconds: int = 0

    @property
    def actor(self) -> str:
        """Return the worker that believes it is the owner."""
        return self.leases[0].worker

    def perform(self, connection: PgConnection) -> object:
        """Return the queue's answer."""
        if self.event in MANY_AT_ONCE:
            return MANY_AT_ONCE[self.event](connection, self)
        [lease] = self.leases
        return ONE_BY_ONE[self.event](connection, lease, self.seconds)

    def expect(self, world: World, now: datetime, _answer: object) -> object:
        """Return the model's answer."""
        if self.event is Event.HEARTBEAT:
            beats = {lease: heartbeat(world, lease, self.seconds, now) for lease in self.leases}
            return {lease: beat for lease, beat in beats.items() if beat is not None}
        if self.event in MANY_AT_ONCE:
            return {lease.run_id for lease in self.leases if EXPECTED[self.event](world, lease, self.seconds, now)}
        return EXPECTED[self.event](world, self.leases[0], self.seconds, now)

    def locks(self) -> set[int]:
        """Return nothing: it locks only runs that it changes."""
        return set()


MANY_AT_ONCE: dict[Event, Callable[[PgConnection, Writing], object]] = {
    Event.HEARTBEAT: lambda connection, move: queue.heartbeat(connection, dict.fromkeys(move.leases, move.seconds)),
    Event.SUCCEED: lambda connection, move: queue.succeed(
        connection, [Done(lease, '{"done": true}') for lease in move.leases]
    ),
    Event.UNCLAIM: lambda connection, move: queue.unclaim(connection, move.leases),
}

ONE_BY_ONE: dict[Event, Callable[[PgConnection, Lease, int], object]] = {
    Event.FAIL: lambda connection, lease, seconds: queue.fail(connection, lease, FAILURE, seconds),
    Event.GIVE_UP: lambda connection, lease, _: queue.give_up(connection, lease, HOPELESS),
    Event.RELEASE: lambda connection, lease, _: queue.release(connection, lease, RELEASED.error),
    Event.SNOOZE: lambda connection, lease, _: queue.snooze(connection, lease, MUCH_LATER, SNOOZED.error),
    Event.CANCELLED: lambda connection, lease, _: queue.cancelled(connection, lease),
}

EXPECTED: dict[Event, Callable[[World, Lease, int, datetime], object]] = {
    Event.SUCCEED: lambda world, lease, _, now: succeed(world, lease, {"done": True}, now),
    Event.UNCLAIM: lambda world, lease, _, now: unclaim(world, lease, now),
    Event.FAIL: fail,
    Event.GIVE_UP: lambda world, lease, _, now: give_up(world, lease, now),
    Event.RELEASE: lambda world, lease, _, now: release(world, lease, now),
    Event.SNOOZE: lambda world, lease, _, now: snooze(world, lease, now),
    Event.CANCELLED: lambda world, lease, _, now: cancelled(world, lease, now),
}


@dataclass(frozen=True)
class Telling:
    """The owner's progress: not an event, but fenced like a heartbeat."""

    lease: Lease

    @property
    def actor(self) -> str:
        """Return the worker that believes it is the owner."""
        return self.lease.worker

    def perform(self, connection: PgConnection) -> None:
        """Write the progress; there is no answer."""
        queue.show_progress(connection, {self.lease: '{"share": 0.5}'})

    def expect(self, world: World, now: datetime, _answer: object) -> None:
        """Expect the progress, if the lease is still the worker's and the row is not locked."""
        run = None if self.lease.run_id in world.locked else owned(world, Event.HEARTBEAT, self.lease)
        if run:
            run.becomes(Event.HEARTBEAT, Status.RUNNING, now, progress={"share": 0.5})

    def locks(self) -> set[int]:
        """Return nothing: it locks only the run that it changes."""
        return set()


def everything_under(lease: Lease) -> list[Writing | Telling]:
    """Return everything that a worker can write if it believes that it has this lease."""
    return [*(Writing(event, (lease,)) for event in (Event.HEARTBEAT, *EXPECTED)), Telling(lease)]
