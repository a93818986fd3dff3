"""A run of the model: its expected row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from rowcall.queue import Failure
from rowcall.status import BY_EVENT, FINAL, LIVE, Event, Status

# What the audit log contains of a run.
AUDITED = ("status", "attempts", "max_attempts", "lease_no", "run_at", "locked_by", "cancel_requested_at")

# The ends of an attempt by its own worker, which show that the run has not killed it this time.
PROPER_ENDS = {Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.CANCELLED}

# How often each transition happened: event, status before, status after.
HAPPENED: Counter[tuple[Event, Status, Status]] = Counter()


@dataclass
class Run:
    """A row of job_runs: every column that the queue itself writes."""

    id: int
    run_at: datetime
    updated_at: datetime
    job_type: str = "noop"
    payload: Mapping[str, Any] = field(default_factory=dict)
    queue: str = "default"
    priority: int = 0
    status: Status = Status.QUEUED
    attempts: int = 0
    max_attempts: int = 10
    lease_no: int = 0
    locked_by: str | None = None
    locked_until: datetime | None = None
    cancel_requested_at: datetime | None = None
    suspect: int = 0
    idempotency_key: str | None = None
    natural_key: str | None = None
    unique_mode: str = "ever"
    last_error: str | None = None
    error_type: str | None = None
    failed_at: datetime | None = None
    last_stack: str | None = None
    progress: Any = None
    result: Any = None
    created_by: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def has_attempts_left(self) -> bool:
        return self.attempts < self.max_attempts

    @property
    def was_asked_to_stop(self) -> bool:
        return self.cancel_requested_at is not None

    @property
    def is_unique(self) -> bool:
        """Whether it holds its natural key."""
        return self.natural_key is not None and self.status in LIVE

    def is_due(self, now: datetime) -> bool:
        return self.status in BY_EVENT[Event.CLAIM].sources and self.run_at <= now

    def lease_expired(self, now: datetime) -> bool:
        return self.locked_until is not None and self.locked_until < now

    def becomes(self, event: Event, status: Status, now: datetime, **changes: Any) -> None:
        """Change as the event says: only a running run has a lease, and only a final one has a finish time."""
        assert status in BY_EVENT[event].targets, f"{event} cannot lead to {status}"
        HAPPENED[event, self.status, status] += 1
        self.status = status
        self.updated_at = now
        self.finished_at = now if status in FINAL else None
        if event in PROPER_ENDS:
            self.suspect = min(self.suspect, 1)
        elif event is Event.EXPIRE:
            self.suspect += 1
        if status is not Status.RUNNING:
            self.locked_by = self.locked_until = None
        for name, value in changes.items():
            setattr(self, name, value)

    def shows(self, failure: Failure, now: datetime) -> None:
        """Store the error of the latest attempt."""
        self.last_error, self.error_type, self.last_stack = failure.error, failure.error_type, failure.stack
        self.failed_at = now

    def audited(self) -> dict[str, Any]:
        """Return the run as the audit log shows it."""
        values = {name: getattr(self, name) for name in AUDITED}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


COLUMNS = tuple(column.name for column in fields(Run))
