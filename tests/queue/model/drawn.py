"""What Hypothesis draws: the runs that an example starts with, and moves that mostly can succeed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from rowcall.queue import ClaimRequest, Lease
from rowcall.status import BY_EVENT, FINAL, LIVE, TRANSITIONS, Event, Status, Who, allowed
from tests.queue.model.anyone import Asking
from tests.queue.model.operator import Cloning, Steering
from tests.queue.model.owner import MANY_AT_ONCE, MESSAGE, MUCH_LATER, WORKERS, Telling, Writing
from tests.queue.model.run import Run
from tests.queue.model.worker import Claiming, ClaimingSuspect, FinishingAndClaiming, Sweeping
from tests.queue.model.world import Move, World

QUEUES = ("default", "mail")
TYPES = ("noop", "from_the_future")

# Different for each queue: which of two that have waited equally long goes first is undefined.
LONG_AGO = {name: datetime(2020, 1, place, tzinfo=UTC) for place, name in enumerate(QUEUES, start=1)}

# An example ends long before any of its leases expires by itself.
LEASE_SECONDS = {"noop": 600.0, "from_the_future": 900.0}
LEASED_SECONDS = 1800
BEAT_SECONDS = (600, 3600)
DELAY_SECONDS = (0, 3600)

ENDING = [t.event for t in TRANSITIONS if t.who is Who.OWNER and Status.RUNNING not in t.targets]
OPERATORS_EVENTS = [transition.event for transition in TRANSITIONS if transition.who is Who.OPERATOR]


@dataclass(frozen=True)
class Start:
    """A run in the middle of its life, in any state that the table allows."""

    status: Status
    attempts: int
    left: int
    lease_no: int
    queue: str
    priority: int
    job_type: str
    worker: str
    due: bool
    expired: bool
    asked_to_stop: bool
    suspect: int

    def run(self, now: datetime, place: int) -> Run:
        """Return its row.  No two runs are due at the same time; `place` makes them differ."""
        apart = timedelta(seconds=place + 1)
        due = self.due or self.status is Status.RUNNING
        run = Run(0, now - apart if due else now + timedelta(hours=1) + apart, now)
        run.status, run.queue, run.priority, run.job_type = self.status, self.queue, self.priority, self.job_type
        run.attempts = self.attempts + (self.status is Status.RUNNING)
        run.max_attempts = max(run.attempts + self.left, 1)
        run.lease_no = max(run.attempts, self.lease_no)
        run.cancel_requested_at = now if self.asked_to_stop else None
        run.suspect = self.suspect
        if self.status is Status.RUNNING:
            run.locked_by = self.worker
            run.locked_until = now - apart if self.expired else now + timedelta(seconds=LEASED_SECONDS)
            run.started_at, run.progress = now, {"share": 0.1}
        if self.status in FINAL:
            run.finished_at = now
        if self.status in {Status.FAILED, Status.DEAD}:
            run.last_error, run.error_type, run.last_stack, run.failed_at = "it broke", "ValueError", "Traceback", now
        return run


STARTS = st.lists(
    st.builds(
        Start,
        status=st.sampled_from([*8 * [Status.RUNNING], Status.FAILED, Status.DEAD, *Status]),
        attempts=st.integers(0, 2),
        left=st.sampled_from([0, 0, 1, 2]),
        lease_no=st.integers(0, 4),
        queue=st.sampled_from(QUEUES),
        priority=st.integers(0, 1),
        job_type=st.sampled_from(["noop", *TYPES]),
        worker=st.sampled_from([*WORKERS, MESSAGE]),
        due=st.booleans(),
        expired=st.booleans(),
        asked_to_stop=st.booleans(),
        suspect=st.sampled_from([0, 0, 0, 1, 2]),
    ),
    min_size=3,
    max_size=12,
)


Liked = Callable[[Run], bool]


def a_run(draw: st.DrawFn, liked: Liked = lambda run: True) -> Run:
    """Draw a run, mostly one that is liked."""
    world: World = draw(st.runner()).world
    ids = [run.id for run in world.runs.values() if liked(run)]
    return world.runs[draw(st.sampled_from([*4 * ids, *world.runs]))]


def running(run: Run) -> bool:
    """Whether a worker has it."""
    return run.status is Status.RUNNING


def live(run: Run) -> bool:
    """Whether it is not finished."""
    return run.status in LIVE


def lease(draw: st.DrawFn, run: Run) -> Lease:
    """Draw the lease that the run has, or would have."""
    return Lease(run.locked_by or draw(st.sampled_from(WORKERS)), run.id, run.lease_no)


REQUESTS = st.builds(
    ClaimRequest,
    leases=st.sampled_from([LEASE_SECONDS, {"noop": 600.0}]),
    limit=st.sampled_from([1, 2, 10]),
    queues=st.sampled_from([None, None, ["default"], ["mail"]]),
)

PAUSED = st.sampled_from([(), (), *((name,) for name in QUEUES), QUEUES])

PAYLOADS = st.sampled_from([{"number": 1}, {"number": 2}])
KEYS = st.sampled_from([None, "key-1", "key-2", "key-3"])

CLAIMINGS = st.builds(Claiming, st.sampled_from(WORKERS), REQUESTS)
SUSPECT_CLAIMINGS = st.builds(ClaimingSuspect, st.sampled_from(WORKERS), REQUESTS, st.booleans())


@st.composite
def askings_about_numbers(draw: st.DrawFn) -> Asking:
    """Draw one enqueued run or a few with natural keys, with or without the caller's keys, mostly the same content."""
    asks = draw(st.lists(st.tuples(PAYLOADS, KEYS), min_size=1, max_size=3))
    return Asking(tuple(asks), {"priority": draw(st.sampled_from([0, 0, 0, 1]))}, about_numbers=True)


@st.composite
def askings(draw: st.DrawFn) -> Asking:
    """Draw one enqueued run or a few, with or without the caller's keys."""
    queue = draw(st.sampled_from([None, *QUEUES]))
    options = {
        "queue": queue,
        "run_at": draw(st.sampled_from([None, None, LONG_AGO[queue or "default"], MUCH_LATER])),
        "priority": draw(st.integers(0, 1)),
        "max_attempts": draw(st.sampled_from([None, 1, 2])),
    }
    asks = draw(st.lists(st.tuples(PAYLOADS, KEYS), min_size=1, max_size=3))
    return Asking(tuple(asks), options)


@st.composite
def finishings(draw: st.DrawFn) -> FinishingAndClaiming:
    """Draw a worker with results for some of its runs, and room for more."""
    done = some_leases(draw)
    return FinishingAndClaiming(done[0].worker, draw(REQUESTS), done)


@st.composite
def leases(draw: st.DrawFn) -> Lease:
    """Draw the lease of a run, mostly of a running one."""
    return lease(draw, a_run(draw, running))


def some_leases(draw: st.DrawFn) -> tuple[Lease, ...]:
    """Draw the leases of some runs that one worker believes it has."""
    drawn = [lease(draw, a_run(draw, running)) for _ in range(draw(st.integers(1, 3)))]
    own = {one.run_id: one._replace(worker=drawn[0].worker) for one in drawn}
    return tuple(own.values())


@st.composite
def writings(draw: st.DrawFn) -> list[Writing | Telling]:
    """Draw a heartbeat for some runs, the progress of one, and every way to end an attempt, each for another run."""
    beat = Writing(Event.HEARTBEAT, some_leases(draw), seconds(draw, Event.HEARTBEAT))
    moves: list[Writing | Telling] = [beat, Telling(lease(draw, a_run(draw, running)))]
    ended: set[int] = set()
    for event in draw(st.permutations(ENDING)):
        chosen = a_run(draw, functools.partial(may_end, event, ended))
        moves.append(write(draw, chosen, event))
        ended.add(chosen.id)
    return moves


def may_end(event: Event, ended: set[int], run: Run) -> bool:
    """Whether it is running, and meets the guard of this event."""
    fits = {Event.CANCELLED: run.was_asked_to_stop, Event.FAIL: run.has_attempts_left}.get(event, True)
    return running(run) and fits and run.id not in ended


def write_any(draw: st.DrawFn, run: Run) -> Writing | Telling:
    """Draw any event of this run's owner, or its progress, which is not an event."""
    return write(draw, run, draw(st.sampled_from([None, Event.HEARTBEAT, *ENDING])))


def write(draw: st.DrawFn, run: Run, event: Event | None) -> Writing | Telling:
    """Draw this event of the run's owner, or its progress; mostly for several runs if the queue takes many at once."""
    own = lease(draw, run)
    if event is None:
        return Telling(own)
    more = [one for one in some_leases(draw) if one.run_id != run.id] if event in MANY_AT_ONCE else []
    return Writing(event, (own, *(one._replace(worker=own.worker) for one in more)), seconds(draw, event))


def seconds(draw: st.DrawFn, event: Event) -> int:
    """Draw by how much a heartbeat extends the lease, or how long a failed run waits."""
    return draw(st.sampled_from(BEAT_SECONDS if event is Event.HEARTBEAT else DELAY_SECONDS))


@st.composite
def steerings(draw: st.DrawFn) -> list[Steering | Cloning]:
    """Draw some of an operator's events in any order, each mostly where it is allowed, and a clone."""
    moves: list[Steering | Cloning] = [Cloning(a_run(draw).id)] if draw(st.booleans()) else []
    for event in draw(st.permutations(OPERATORS_EVENTS))[: draw(st.integers(1, 4))]:
        chosen = a_run(draw, functools.partial(allows, event))
        moves.append(Steering(event, chosen.id, chosen.lease_no - draw(st.sampled_from([0, 0, 1]))))
    return moves


def allows(event: Event, run: Run) -> bool:
    """Whether the event is allowed in its status."""
    return run.status in BY_EVENT[event].sources


def steer(draw: st.DrawFn, run: Run) -> Steering:
    """Draw an operator's event, mostly one that this run allows; sometimes with an earlier lease number."""
    event = draw(st.sampled_from([*4 * allowed(run.status, Who.OPERATOR), *OPERATORS_EVENTS]))
    return Steering(event, run.id, run.lease_no - draw(st.sampled_from([0, 0, 1])))


@st.composite
def sweepings(draw: st.DrawFn) -> Sweeping:
    """Draw the expiry of a lease, mostly of one that has expired."""
    now = draw(st.runner()).world.now
    return sweep(draw, a_run(draw, lambda run: run.lease_expired(now)))


def sweep(draw: st.DrawFn, run: Run) -> Sweeping:
    """Draw the expiry of this run's lease, or of an earlier one."""
    return Sweeping(run.id, run.lease_no - draw(st.sampled_from([0, 0, 1])), draw(st.sampled_from(WORKERS)))


def claim(draw: st.DrawFn, _run: Run) -> Claiming:
    """Draw a claim that may find this run."""
    return draw(CLAIMINGS)


@st.composite
def run_ids(draw: st.DrawFn) -> set[int]:
    """Draw the ids of a few live runs."""
    return {a_run(draw, live).id for _ in range(draw(st.integers(1, 3)))}


@st.composite
def two_about_one_run(draw: st.DrawFn) -> tuple[Move, Move]:
    """Draw two moves that may conflict."""
    chosen = a_run(draw, running)
    moves: list[Callable[[st.DrawFn, Run], Move]] = [write_any, steer, sweep, claim]
    first, second = draw(st.sampled_from(moves)), draw(st.sampled_from(moves))
    return first(draw, chosen), second(draw, chosen)


@st.composite
def an_operator_behind_another(draw: st.DrawFn) -> tuple[Move, Move]:
    """Draw any change of a run, and an operator's change of it by somebody who has not seen the first one."""
    chosen = a_run(draw)
    first: Move
    if running(chosen):
        first = write_any(draw, chosen)
    elif live(chosen):
        first = claim(draw, chosen)
    else:
        first = steer(draw, chosen)
    return first, steer(draw, chosen)


@st.composite
def a_sweep_behind_a_heartbeat(draw: st.DrawFn) -> tuple[Writing, Sweeping]:
    """Draw a heartbeat, and a sweep of the lease that it extends."""
    chosen = a_run(draw, running)
    return Writing(Event.HEARTBEAT, (lease(draw, chosen),), max(BEAT_SECONDS)), sweep(draw, chosen)
