"""What an attempt comes to: a result, or what the error that ended it means for its run.

It is decided where the error was raised, in a thread or a child process, and travels from there as data, because an
exception of a child process cannot.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rowcall.base import errors
from rowcall.base.redaction import fit_to_keep
from rowcall.queue import Failure
from rowcall.status import Event

ERROR_CHARACTERS = 1000
STACK_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class AttemptError:
    """The event to write, and why.  No event: the lease is lost, and nothing may be written."""

    event: Event | None
    failure: Failure
    after: float | None = None
    until: datetime | None = None

    def packed(self) -> dict[str, Any]:
        """The error as JSON can carry it."""
        return {**asdict(self), "until": self.until and self.until.isoformat()}

    @classmethod
    def unpacked(cls, data: Mapping[str, Any]) -> AttemptError:
        """What `packed` made, on the other side."""
        return cls(
            data["event"] and Event(data["event"]),
            Failure(**data["failure"]),
            data["after"],
            data["until"] and datetime.fromisoformat(data["until"]),
        )


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: with a value (JSON text), or with an error.

    `finished`: the handler's own transaction has written the success already.
    """

    value: str | None = None
    error: AttemptError | None = None
    finished: bool = False

    @classmethod
    def of_error(cls, error: BaseException) -> AttemptResult:
        """The attempt ended with this error."""
        return cls(error=error_of(error))

    def packed(self) -> dict[str, Any]:
        """The result as JSON can carry it."""
        return {"value": self.value, "error": self.error and self.error.packed(), "finished": self.finished}

    @classmethod
    def unpacked(cls, data: Mapping[str, Any]) -> AttemptResult:
        """What `packed` made, on the other side."""
        error = data["error"] and AttemptError.unpacked(data["error"])
        return cls(data["value"], error, data["finished"])


def error_of(error: BaseException) -> AttemptError:
    """What the error that ended an attempt means for its run."""
    failure = failure_of(error)
    match error:
        case errors.LeaseLost():
            return AttemptError(None, failure)
        case errors.CancelRequested():
            return AttemptError(Event.CANCELLED, failure)
        case errors.Snooze():
            return AttemptError(Event.SNOOZE, failure, until=error.until)
        case errors.Permanent():
            return AttemptError(Event.GIVE_UP, failure)
        case errors.Retry():
            return AttemptError(Event.FAIL, failure, after=error.after)
    return AttemptError(Event.FAIL, failure)


def failure_of(error: BaseException, stack: str | None = None) -> Failure:
    """What is kept of an error: short, and fit to be shown.  The stack is its own, unless another is known."""
    name = error.kind if isinstance(error, errors.ChildDied) else type(error).__name__
    return Failure(
        (fit_to_keep(str(error)) or name)[:ERROR_CHARACTERS],
        name,
        fit_to_keep(stack or "".join(traceback.format_exception(error)))[-STACK_CHARACTERS:],
        permanent=isinstance(error, errors.Permanent),
    )
