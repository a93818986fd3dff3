"""The world of the model: all runs and what is remembered of them, and who may do something to which."""

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
    """All runs, the attempts that did not succeed, what was audited, and which queues are paused."""

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        self.asked: dict[str, tuple[int, object]] = {}
        self.attempts: list[dict[str, Any]] = []
        self.audit: list[dict[str, Any]] = []
        self.paused: set[str] = set()
        # A worker that has nothing to do is to be notified of what is asked for.
        self.asleep = True
        # Of the latest move: when it was made, and whether it told the workers of something due.
        self.now = datetime.min.replace(tzinfo=UTC)
        self.woken = False
        # While two act at once: what the later one saw when it began, and which runs the earlier one has locked.
        self.seen: World | None = None
        self.locked: set[int] = set()

    def copy(self) -> World:
        """The world as it is now."""
        return copy.deepcopy(self)

    def has(self, such: Callable[[Run], bool]) -> bool:
        """Whether there is such a run."""
        return any(such(run) for run in self.runs.values())

    def admits(self, event: Event, run_id: int, guard: Callable[[Run], bool] = lambda run: True) -> Run | None:
        """The run, if its status and this guard let the event happen to it.

        A statement looks for its row in what was committed when it began, waits for the transaction that has locked the
        row, and looks again at what became of it.  So the guard must hold for what was seen, and for what there is.
        """
        for world in (self.seen or self, self):
            run = world.runs.get(run_id)
            if run is None or run.status not in BY_EVENT[event].sources or not guard(run):
                return None
        return self.runs[run_id]

    def forget_last_snooze(self, run: Run) -> None:
        """Of several snoozes in a row the history keeps the last."""
        of_run = [attempt for attempt in self.attempts if attempt["run_id"] == run.id]
        if of_run and of_run[-1]["outcome"] == Event.SNOOZE:
            self.attempts.remove(of_run[-1])

    def remember(self, event: Event, run: Run, failure: Failure, now: datetime) -> None:
        """An attempt ended without success: history, under the lease it had."""
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
    """One thing that somebody does, to the queue and to the model alike."""

    @property
    def actor(self) -> str:
        """Whose connection it takes."""

    def perform(self, connection: PgConnection) -> Any:
        """Do it to the queue, and tell what was answered."""

    def expect(self, world: World, now: datetime, answer: Any) -> Any:
        """Do it to the model, and tell what should be answered.  From `answer` only new ids may be taken."""

    def locks(self) -> set[int]:
        """The runs that it keeps from others until it is committed, even if it changes nothing."""
