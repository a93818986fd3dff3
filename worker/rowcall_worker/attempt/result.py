"""What an attempt comes to: a result, or what the error that ended it means for its run.

It is decided where the error was raised, in a thread or a child process, and travels from there as data, because an
exception of a child process cannot.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from rowcall.base import errors
from rowcall.base.redaction import fit_to_keep
from rowcall.queue import Failure
from rowcall.status import Event

ERROR_CHARACTERS = 1000
STACK_CHARACTERS = 8000

# Of words without end, only this much is searched for secrets: to search a hundred megabytes would stop all threads for
# seconds.  What the cut may leave of a secret is far behind what is kept.
SEARCHED_CHARACTERS = 200_000

# What a handler may ask to wait: thirty years.  The database's own calendar ends, too.
LONGEST_SECONDS = 1e9


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
    """What the error that ended an attempt means for its run.  It may be of any making: this raises nothing."""
    failure = failure_of(error)
    match error:
        case errors.LeaseLost():
            return AttemptError(None, failure)
        case errors.CancelRequested():
            return AttemptError(Event.CANCELLED, failure)
        case errors.Snooze():
            until = _moment(error)
            return AttemptError(Event.FAIL if until is None else Event.SNOOZE, failure, until=until)
        case errors.Permanent():
            return AttemptError(Event.GIVE_UP, failure)
        case errors.Retry():
            return AttemptError(Event.FAIL, failure, after=_seconds(error))
    return AttemptError(Event.FAIL, failure)


def failure_of(error: BaseException, stack: str | None = None) -> Failure:
    """What is kept of an error: short, and fit to be shown.  The stack is its own, unless another is known."""
    name = error.kind if isinstance(error, errors.ChildDied) else _type_name(error)
    return Failure(
        (_kept(_words(error, name)[:SEARCHED_CHARACTERS]) or name)[:ERROR_CHARACTERS],
        name,
        _kept((stack or _stack(error))[-SEARCHED_CHARACTERS:])[-STACK_CHARACTERS:],
        permanent=isinstance(error, errors.Permanent),
    )


def _type_name(error: BaseException) -> str:
    # Past the metaclass, which may have a word of its own for it.
    name: str = type.__dict__["__name__"].__get__(type(error))
    return str.__str__(name)


def _words(error: BaseException, name: str) -> str:
    """What an error says, or that it cannot say it: a team's own error may raise another one instead."""
    try:
        return str.__str__(str(error))
    except BaseException as instead:
        return f"{name}, whose own words raise {_type_name(instead)}"


def _stack(error: BaseException) -> str:
    """The stack with all the words in it; without them where they cannot be had."""
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return "".join(traceback.format_tb(error.__traceback__))


def _kept(text: str) -> str:
    """The text as it may be kept; what cannot be searched for secrets, for want of memory, is not."""
    try:
        return fit_to_keep(text)
    except Exception:
        return ""


def _seconds(error: errors.Retry) -> float | None:
    """After how long to try again, where the error says so in a way that the database takes."""
    try:
        after = float(error.after)  # type: ignore[arg-type]
    except Exception:
        return None
    return after if abs(after) <= LONGEST_SECONDS else None


def _moment(error: errors.Snooze) -> datetime | None:
    """Until when to wait; None where the error does not say it."""
    try:
        return error.until.astimezone(UTC) if error.until.utcoffset() is not None else None
    except Exception:
        return None
