"""An operator changes a waiting, running or finished run.  Every change is audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, Row
from rowcall.base.errors import TransitionRefused
from rowcall.queue import Failure
from rowcall.status import BY_EVENT, Event, Status
from tests.queue.model.anyone import OPERATOR
from tests.queue.model.run import COLUMNS, Run
from tests.queue.model.world import World

LATER = datetime(2040, 1, 1, tzinfo=UTC)

FORCED = Failure("cancelled by force", "Cancelled")

Change = Callable[[World, Run, datetime], None]


def cancel(_: World, run: Run, now: datetime) -> None:
    """Nobody works on it: final at once."""
    run.becomes(Event.CANCEL, Status.CANCELLED, now)


def ask_to_cancel(_: World, run: Run, now: datetime) -> None:
    """A worker has it and keeps it; the time of the first request stays."""
    run.becomes(Event.ASK_TO_CANCEL, Status.RUNNING, now, cancel_requested_at=run.cancel_requested_at or now)


def force_cancel(world: World, run: Run, now: datetime) -> None:
    """Final without its owner, and its attempt goes into the history."""
    world.remember(Event.FORCE_CANCEL, run, FORCED, now)
    run.becomes(Event.FORCE_CANCEL, Status.CANCELLED, now, cancel_requested_at=run.cancel_requested_at or now)


def run_now(_: World, run: Run, now: datetime) -> None:
    """Due at once; attempts and error stay."""
    run.becomes(Event.RUN_NOW, Status.QUEUED, now, run_at=now)


def reschedule(_: World, run: Run, now: datetime) -> None:
    """Due at the operator's time; attempts and error stay."""
    run.becomes(Event.RESCHEDULE, Status.QUEUED, now, run_at=LATER)


def retry(_: World, run: Run, now: datetime) -> None:
    """All attempts again: everything is reset except the lease number."""
    run.becomes(Event.RETRY, Status.QUEUED, now, run_at=now, attempts=0)
    run.cancel_requested_at = run.failed_at = None
    run.last_error = run.error_type = run.last_stack = run.progress = None


CHANGES: dict[Event, Change] = {
    Event.CANCEL: cancel,
    Event.ASK_TO_CANCEL: ask_to_cancel,
    Event.FORCE_CANCEL: force_cancel,
    Event.RUN_NOW: run_now,
    Event.RESCHEDULE: reschedule,
    Event.RETRY: retry,
}

STEERED: dict[Event, Callable[[PgConnection, int, Operator], Row]] = {
    Event.CANCEL: queue.cancel,
    Event.ASK_TO_CANCEL: queue.ask_to_cancel,
    Event.RUN_NOW: queue.run_now,
    Event.RESCHEDULE: partial(queue.reschedule, run_at=LATER),
    Event.RETRY: queue.retry,
}


@dataclass(frozen=True)
class Steering:
    """One of the operator's events.  `lease_no` is the lease that the operator saw; only force cancel checks it."""

    event: Event
    run_id: int
    lease_no: int
    actor: str = OPERATOR

    def perform(self, connection: PgConnection) -> object:
        """Return the changed run, or the refused event and the status."""
        operator = Operator(OPERATOR, "request-1", "app")
        try:
            if self.event is Event.FORCE_CANCEL:
                row = queue.force_cancel(connection, self.run_id, self.lease_no, operator)
            else:
                row = STEERED[self.event](connection, self.run_id, operator)
        except TransitionRefused as refused:
            return refused.event, refused.status
        return {name: row[name] for name in COLUMNS}

    def expect(self, world: World, now: datetime, _answer: object) -> object:
        """Expect a change if the status allows it.

        Force cancel also needs the lease that the operator saw, and a retry a natural key that no other run holds.
        """
        run = world.runs[self.run_id]
        seen = self.event is not Event.FORCE_CANCEL or run.lease_no == self.lease_no
        held = self.event is Event.RETRY and run.natural_key in world.held()
        if run.status not in BY_EVENT[self.event].sources or not seen or held:
            return self.event, run.status
        before = run.audited()
        CHANGES[self.event](world, run, now)
        world.audit.append(audited(self.event, run.id, before, run.audited()))
        world.woken |= run.status is Status.QUEUED
        return vars(run).copy()

    def locks(self) -> set[int]:
        """Return the run, which is locked even when the event is refused."""
        return {self.run_id}


@dataclass(frozen=True)
class Cloning:
    """A new run with the same content."""

    run_id: int
    actor: str = OPERATOR

    def perform(self, connection: PgConnection) -> object:
        """Return the new run, or the refused event and the status."""
        try:
            outcome = queue.clone(connection, self.run_id, Operator(OPERATOR, "request-1", "app"))
        except TransitionRefused as refused:
            return refused.event, refused.status
        row = queue.get_run(connection, outcome.run_id)
        return {name: row[name] for name in COLUMNS}

    def expect(self, world: World, now: datetime, answer: Any) -> object:
        """Expect a run without an idempotency key, a history or a result, unless a run holds the natural key."""
        old = (world.seen or world).runs[self.run_id]
        if old.natural_key in world.held():
            return "clone", old.status
        assert answer["id"] not in world.runs
        new = Run(answer["id"], now, now, old.job_type, old.payload, old.queue, old.priority)
        new.max_attempts, new.created_by = old.max_attempts, OPERATOR
        new.natural_key, new.unique_mode = old.natural_key, old.unique_mode
        if old.id in world.contents:
            world.contents[new.id] = world.contents[old.id]
        world.runs[new.id] = new
        world.audit.append(audited("clone", new.id, {"cloned_from": self.run_id}, None))
        world.woken |= world.asleep
        return vars(new).copy()

    def locks(self) -> set[int]:
        """Return nothing: it locks only its new run."""
        return set()


def audited(action: str, run_id: int, before: object, after: object) -> dict[str, object]:
    """Return a row of the audit log."""
    return {
        "who": OPERATOR,
        "action": action,
        "subject": "run",
        "subject_id": run_id,
        "before": before,
        "after": after,
        "request_id": "request-1",
    }
