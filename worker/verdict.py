"""What an attempt comes to that returned no result: decided where the error was raised, in a thread or a child process.

From there it travels as data, because an exception of a child process cannot.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from shared import errors
from shared.queue import Failure
from shared.redaction import fit_to_keep
from shared.status import Event

ERROR_CHARACTERS = 1000
STACK_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The event to write, and why.  No event: the lease is lost, and nothing may be written."""

    event: Event | None
    failure: Failure
    after: float | None = None
    until: datetime | None = None

    def packed(self) -> dict[str, Any]:
        """As JSON can carry it."""
        return {**asdict(self), "until": self.until and self.until.isoformat()}

    @classmethod
    def unpacked(cls, data: Mapping[str, Any]) -> Verdict:
        """What `packed` made, on the other side."""
        return cls(
            data["event"] and Event(data["event"]),
            Failure(**data["failure"]),
            data["after"],
            data["until"] and datetime.fromisoformat(data["until"]),
        )


def verdict_on(error: BaseException) -> Verdict:
    """What the error that ended an attempt means for its run."""
    failure = failure_of(error)
    match error:
        case errors.LeaseLost():
            return Verdict(None, failure)
        case errors.CancelRequested():
            return Verdict(Event.CANCELLED, failure)
        case errors.Snooze():
            return Verdict(Event.SNOOZE, failure, until=error.until)
        case errors.Permanent():
            return Verdict(Event.GIVE_UP, failure)
        case errors.Retry():
            return Verdict(Event.FAIL, failure, after=error.after)
    return Verdict(Event.FAIL, failure)


def failure_of(error: BaseException, stack: str | None = None) -> Failure:
    """What is kept of an error: short, and fit to be shown.  The stack is its own, unless another is known."""
    kind = error.kind if isinstance(error, errors.ChildDied) else type(error).__name__
    return Failure(
        (fit_to_keep(str(error)) or kind)[:ERROR_CHARACTERS],
        kind,
        fit_to_keep(stack or "".join(traceback.format_exception(error)))[-STACK_CHARACTERS:],
        permanent=isinstance(error, errors.Permanent),
    )
