"""The model's state: all runs and their history, and who may do what to which run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from rowcall.base.database import PgConnection
from rowcall.queue import Failure
from rowcall.status import BY_EVENT, Event
from tests.queue.model.run import Run


class World:
    """All runs, unsuccessful attempts, the audit log, and the paused queues."""

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        # The run and the content of each idempotency key, and the content of each enqueued run.
        self.asked: dict[str | None, tuple[int, object]] = {}
        self.contents: dict[int, object] = {}
        self.attempts: list[dict[str, Any]] = []
        self.audit: list[dict[str, Any]] = []
        self.paused: set[str] = set()
        # An idle worker must be notified of new due runs.
        self.asleep = True
        # Of the latest move: when it was made, and whether it notified the workers.
        self.now = datetime.min.replace(tzinfo=UTC)
        self.woken = False
        # While two moves overlap: what the later one saw when it started, and which runs the earlier one has locked.
        self.seen: World | None = None
        self.locked: set[int] = set()

    def copy(self) -> World:
        """Return a copy."""
        return copy.deepcopy(self)

    def has(self, such: Callable[[Run], bool]) -> bool:
        """Whether a run meets this condition."""
        return any(such(run) for run in self.runs.values())

    def held(self) -> dict[str | None, tuple[int, object]]:
        """Return the run that holds each natural key, and its content."""
        return {run.natural_key: (run.id, self.contents[run.id]) for run in self.runs.values() if run.is_unique}

    def admits(self, event: Event, run_id: int, guard: Callable[[Run], bool] = lambda run: True) -> Run | None:
        """Return the run if its status and this guard allow the event, or else None.

        A statement finds its row in what was committed when it started, waits for the transaction that has locked the
        row, and
        checks the row again.  So the guard must hold for both states.
        """
        for world in (self.seen or self, self):
            run = world.runs.get(run_id)
            if run is None or run.status not in BY_EVENT[event].sources or not guard(run):
                return None
        return self.runs[run_id]

    def forget_last_snooze(self, run: Run) -> None:
        """Delete the snooze before this one: of several in a row, the history keeps only the last."""
        of_run = [attempt for attempt in self.attempts if attempt["run_id"] == run.id]
        if of_run and of_run[-1]["outcome"] == Event.SNOOZE:
            self.attempts.remove(of_run[-1])

    def remember(self, event: Event, run: Run, failure: Failure, now: datetime) -> None:
        """Add an unsuccessful attempt to the history."""
        self.attempts.append(
            {
                "run_id": run.id,
                "lease_no": run.lease_no,
                "attempt": run.attempts,
                "outcome": event,
                "worker": run.locked_by,
                "started_at": run.started_at,
                "ended_at": now,
                "error_type": failure.error_type,
                "error": failure.error,
                "stack": failure.stack,
                "permanent": failure.permanent,
            }
        )


class Move(Protocol):
    """An action on the queue and on the model."""

    @property
    def actor(self) -> str:
        """Return whose connection it uses."""

    def perform(self, connection: PgConnection) -> Any:
        """Do it to the queue, and return the answer."""

    def expect(self, world: World, now: datetime, answer: Any) -> Any:
        """Do it to the model, and return the expected answer.  It may use only new ids of `answer`."""

    def locks(self) -> set[int]:
        """Return the runs that it keeps locked until it commits, even if it changes nothing."""
