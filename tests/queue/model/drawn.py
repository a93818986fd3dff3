"""What Hypothesis draws: the runs an example begins with, and the moves, mostly such as may succeed."""

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
from tests.queue.model.owner import MANY_AT_ONCE, MUCH_LATER, WORKERS, Telling, Writing
from tests.queue.model.run import Run
from tests.queue.model.worker import Claiming, ClaimingSuspect, FinishingAndClaiming, Sweeping
from tests.queue.model.world import Move, World

QUEUES = ("default", "mail")
TYPES = ("noop", "from_the_future")

# Of each queue another: which of two that have waited equally long goes first is anybody's guess.
LONG_AGO = {name: datetime(2020, 1, place, tzinfo=UTC) for place, name in enumerate(QUEUES, start=1)}

# An example is over long before any lease of it runs out by itself.
LEASE_SECONDS = {"noop": 600.0, "from_the_future": 900.0}
LEASED_SECONDS = 1800
BEAT_SECONDS = (600, 3600)
DELAY_SECONDS = (0, 3600)

ENDING = [t.event for t in TRANSITIONS if t.who is Who.OWNER and Status.RUNNING not in t.targets]
OPERATORS_EVENTS = [transition.event for transition in TRANSITIONS if transition.who is Who.OPERATOR]


@dataclass(frozen=True)
class Start:
    """A run in the middle of its life, in any state that the table can hold."""

    status: Status
    attempts: int
    left: int
    lease_no: int
    queue: str
    priority: int
    job_type: str
    worker: str
    due: bool
    ran_out: bool
    asked_to_stop: bool
    suspect: int

    def run(self, now: datetime, place: int) -> Run:
        """Its row.  No two runs are due at the same moment; `place` tells them apart."""
        apart = timedelta(seconds=place + 1)
        due = self.due or self.status is Status.RUNNING
        run = Run(0, now - apart if due else now + timedelta(hours=1) + apart, now, now)
        run.status, run.queue, run.priority, run.job_type = self.status, self.queue, self.priority, self.job_type
        run.attempts = self.attempts + (self.status is Status.RUNNING)
        run.max_attempts = max(run.attempts + self.left, 1)
        run.lease_no = max(run.attempts, self.lease_no)
        run.cancel_requested_at = now if self.asked_to_stop else None
        run.suspect = self.suspect
        if self.status is Status.RUNNING:
            run.locked_by = self.worker
            run.locked_until = now - apart if self.ran_out else now + timedelta(seconds=LEASED_SECONDS)
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
        worker=st.sampled_from(["worker-1", *WORKERS]),
        due=st.booleans(),
        ran_out=st.booleans(),
        asked_to_stop=st.booleans(),
        suspect=st.sampled_from([0, 0, 0, 1, 2]),
    ),
    min_size=3,
    max_size=12,
)


Liked = Callable[[Run], bool]


def a_run(draw: st.DrawFn, liked: Liked = lambda run: True) -> Run:
    """One of the runs, mostly such a one."""
    world: World = draw(st.runner()).world
    ids = [run.id for run in world.runs.values() if liked(run)]
    return world.runs[draw(st.sampled_from([*4 * ids, *world.runs]))]


def running(run: Run) -> bool:
    """Somebody works on it."""
    return run.status is Status.RUNNING


def live(run: Run) -> bool:
    """It has not ended."""
    return run.status in LIVE


def lease(draw: st.DrawFn, run: Run) -> Lease:
    """The lease that a run is under, or would be."""
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
def askings(draw: st.DrawFn) -> Asking:
    """One run or a few, with or without keys."""
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
    """A worker with results for some of what it holds, and room for more."""
    done = some_leases(draw)
    return FinishingAndClaiming(done[0].worker, draw(REQUESTS), done)


@st.composite
def leases(draw: st.DrawFn) -> Lease:
    """The lease of a run, mostly of one that runs."""
    return lease(draw, a_run(draw, running))


def some_leases(draw: st.DrawFn) -> tuple[Lease, ...]:
    """The leases of some runs, as one worker believes to have them."""
    drawn = [lease(draw, a_run(draw, running)) for _ in range(draw(st.integers(1, 3)))]
    own = {one.run_id: one._replace(worker=drawn[0].worker) for one in drawn}
    return tuple(own.values())


@st.composite
def writings(draw: st.DrawFn) -> list[Writing | Telling]:
    """A heartbeat for some runs, the progress of one, and every way to end an attempt, each on a run of its own."""
    beat = Writing(Event.HEARTBEAT, some_leases(draw), seconds(draw, Event.HEARTBEAT))
    moves: list[Writing | Telling] = [beat, Telling(lease(draw, a_run(draw, running)))]
    ended: set[int] = set()
    for event in draw(st.permutations(ENDING)):
        chosen = a_run(draw, functools.partial(may_end, event, ended))
        moves.append(write(draw, chosen, event))
        ended.add(chosen.id)
    return moves


def may_end(event: Event, ended: set[int], run: Run) -> bool:
    """It runs, and has what this end asks for."""
    fits = {Event.CANCELLED: run.was_asked_to_stop, Event.FAIL: run.has_attempts_left}.get(event, True)
    return running(run) and fits and run.id not in ended


def write_any(draw: st.DrawFn, run: Run) -> Writing | Telling:
    """Any event of this run's owner, or its progress, which is no event."""
    return write(draw, run, draw(st.sampled_from([None, Event.HEARTBEAT, *ENDING])))


def write(draw: st.DrawFn, run: Run, event: Event | None) -> Writing | Telling:
    """This event of the run's owner, or its progress; where the queue takes many at once, mostly for more runs."""
    own = lease(draw, run)
    if event is None:
        return Telling(own)
    more = [one for one in some_leases(draw) if one.run_id != run.id] if event in MANY_AT_ONCE else []
    return Writing(event, (own, *(one._replace(worker=own.worker) for one in more)), seconds(draw, event))


def seconds(draw: st.DrawFn, event: Event) -> int:
    """How long a heartbeat extends the lease, or how long a failed run waits."""
    return draw(st.sampled_from(BEAT_SECONDS if event is Event.HEARTBEAT else DELAY_SECONDS))


@st.composite
def steerings(draw: st.DrawFn) -> list[Steering | Cloning]:
    """Some of an operator's events in any order, each mostly where it is allowed, and a clone."""
    moves: list[Steering | Cloning] = [Cloning(a_run(draw).id)] if draw(st.booleans()) else []
    for event in draw(st.permutations(OPERATORS_EVENTS))[: draw(st.integers(1, 4))]:
        chosen = a_run(draw, functools.partial(allows, event))
        moves.append(Steering(event, chosen.id, chosen.lease_no - draw(st.sampled_from([0, 0, 1]))))
    return moves


def allows(event: Event, run: Run) -> bool:
    """The event may start from the status it is in."""
    return run.status in BY_EVENT[event].sources


def steer(draw: st.DrawFn, run: Run) -> Steering:
    """An operator's event, mostly one that this run allows; now and then from a look at an earlier lease."""
    event = draw(st.sampled_from([*4 * allowed(run.status, Who.OPERATOR), *OPERATORS_EVENTS]))
    return Steering(event, run.id, run.lease_no - draw(st.sampled_from([0, 0, 1])))


@st.composite
def sweepings(draw: st.DrawFn) -> Sweeping:
    """The end of one lease, mostly of one that has run out."""
    now = draw(st.runner()).world.now
    return sweep(draw, a_run(draw, lambda run: run.lease_ran_out(now)))


def sweep(draw: st.DrawFn, run: Run) -> Sweeping:
    """The end of this run's lease, or of one that was seen before it."""
    return Sweeping(run.id, run.lease_no - draw(st.sampled_from([0, 0, 1])), draw(st.sampled_from(WORKERS)))


def claim(draw: st.DrawFn, _run: Run) -> Claiming:
    """A claim that may come upon this run."""
    return draw(CLAIMINGS)


@st.composite
def run_ids(draw: st.DrawFn) -> set[int]:
    """A few runs that have not ended."""
    return {a_run(draw, live).id for _ in range(draw(st.integers(1, 3)))}


@st.composite
def two_about_one_run(draw: st.DrawFn) -> tuple[Move, Move]:
    """Two moves that may well be in each other's way."""
    chosen = a_run(draw, running)
    moves: list[Callable[[st.DrawFn, Run], Move]] = [write_any, steer, sweep, claim]
    first, second = draw(st.sampled_from(moves)), draw(st.sampled_from(moves))
    return first(draw, chosen), second(draw, chosen)


@st.composite
def an_operator_behind_another(draw: st.DrawFn) -> tuple[Move, Move]:
    """Whatever is done to a run, and what an operator does to it who had not seen that."""
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
    """A lease is extended while somebody is about to end it."""
    chosen = a_run(draw, running)
    return Writing(Event.HEARTBEAT, (lease(draw, chosen),), max(BEAT_SECONDS)), sweep(draw, chosen)
