"""An operator steers: a run that waits, one that runs, or one that has ended.  Every change is audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
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

FORCED = Failure("cancelled by force", "Cancelled")

Change = Callable[[World, Run, datetime], None]


def cancel(_: World, run: Run, now: datetime) -> None:
    """Nobody works on it: final at once."""
    run.becomes(Event.CANCEL, Status.CANCELLED, now)


def ask_to_cancel(_: World, run: Run, now: datetime) -> None:
    """Somebody works on it, and keeps it; when it was first asked for is kept too."""
    run.becomes(Event.ASK_TO_CANCEL, Status.RUNNING, now, cancel_requested_at=run.cancel_requested_at or now)


def force_cancel(world: World, run: Run, now: datetime) -> None:
    """Final over its owner's head, and its attempt goes into the history."""
    world.remember(Event.FORCE_CANCEL, run, FORCED, now)
    run.becomes(Event.FORCE_CANCEL, Status.CANCELLED, now, cancel_requested_at=run.cancel_requested_at or now)


def run_now(_: World, run: Run, now: datetime) -> None:
    """Due at once; attempts and error stay."""
    run.becomes(Event.RUN_NOW, Status.QUEUED, now, run_at=now)


def retry(_: World, run: Run, now: datetime) -> None:
    """A new life with all attempts: everything of the old one is forgotten but the number of its last lease."""
    run.becomes(Event.RETRY, Status.QUEUED, now, run_at=now, attempts=0)
    run.cancel_requested_at = run.failed_at = None
    run.last_error = run.error_type = run.last_stack = run.progress = None


CHANGES: dict[Event, Change] = {
    Event.CANCEL: cancel,
    Event.ASK_TO_CANCEL: ask_to_cancel,
    Event.FORCE_CANCEL: force_cancel,
    Event.RUN_NOW: run_now,
    Event.RETRY: retry,
}

STEERED: dict[Event, Callable[[PgConnection, int, Operator], Row]] = {
    Event.CANCEL: queue.cancel,
    Event.ASK_TO_CANCEL: queue.ask_to_cancel,
    Event.RUN_NOW: queue.run_now,
    Event.RETRY: queue.retry,
}


@dataclass(frozen=True)
class Steering:
    """One of the operator's events.  `lease_no` is the lease that was looked at: only force cancel asks for it."""

    event: Event
    run_id: int
    lease_no: int
    actor: str = OPERATOR

    def perform(self, connection: PgConnection) -> object:
        """The run as it is now, or what was told of a refusal."""
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
        """The status as it is when nobody else has the run; and for force, the lease that was looked at."""
        run = world.runs[self.run_id]
        seen = self.event is not Event.FORCE_CANCEL or run.lease_no == self.lease_no
        if run.status not in BY_EVENT[self.event].sources or not seen:
            return self.event, run.status
        before = run.audited()
        CHANGES[self.event](world, run, now)
        world.audit.append(audited(self.event, run.id, before, run.audited()))
        world.woken |= run.status is Status.QUEUED
        return vars(run).copy()

    def locks(self) -> set[int]:
        """The run, even where it is refused."""
        return {self.run_id}


@dataclass(frozen=True)
class Cloning:
    """The same content again, as a run of its own."""

    run_id: int
    actor: str = OPERATOR

    def perform(self, connection: PgConnection) -> dict[str, Any]:
        """The new run."""
        outcome = queue.clone(connection, self.run_id, Operator(OPERATOR, "request-1", "app"))
        row = queue.get_run(connection, outcome.run_id)
        return {name: row[name] for name in COLUMNS}

    def expect(self, world: World, now: datetime, answer: dict[str, Any]) -> object:
        """No key, no history, and nothing of what became of the other."""
        old = (world.seen or world).runs[self.run_id]
        assert answer["id"] not in world.runs
        new = Run(answer["id"], now, now, now, old.job_type, old.payload, old.queue, old.priority)
        new.max_attempts, new.created_by = old.max_attempts, OPERATOR
        world.runs[new.id] = new
        world.audit.append(audited("clone", new.id, {"cloned_from": self.run_id}, None))
        world.woken |= world.asleep
        return vars(new).copy()

    def locks(self) -> set[int]:
        """None but its own."""
        return set()


def audited(action: str, run_id: int, before: object, after: object) -> dict[str, object]:
    """A row of the audit log."""
    return {
        "who": OPERATOR,
        "action": action,
        "subject": "run",
        "subject_id": run_id,
        "before": before,
        "after": after,
        "request_id": "request-1",
    }
