"""The outcome of an attempt: a result, or what the error that ended it means for its run.

This is decided where the error was raised, in a thread or a child process, and sent as data, because an exception
cannot leave a child process.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rowcall.base import errors
from rowcall.base.errors import Permanent, message_of
from rowcall.base.jsonb import stored_small
from rowcall.base.redaction import SEARCHED_CHARACTERS, fit_to_keep
from rowcall.queue import Failure
from rowcall.status import Event

ERROR_CHARACTERS = 1000
STACK_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class AttemptError:
    """The event to write, and why.  No event means that the lease is lost, and nothing may be written."""

    event: Event | None
    failure: Failure
    after: float | None = None
    until: datetime | None = None

    def packed(self) -> dict[str, Any]:
        """The error as JSON-compatible data."""
        return {**asdict(self), "until": self.until and self.until.isoformat()}

    @classmethod
    def unpacked(cls, data: Mapping[str, Any]) -> AttemptError:
        """The inverse of `packed`."""
        return cls(
            data["event"] and Event(data["event"]),
            Failure(**data["failure"]),
            data["after"],
            data["until"] and datetime.fromisoformat(data["until"]),
        )


class AttemptResult(NamedTuple):
    """How an attempt ended: with a value (JSON text), or with an error.

    `finished`: the handler's own transaction has written the success already.  `holder`: the attempt has not ended; the
    run was handed over, and its lease goes on under this name.
    """

    value: str | None = None
    error: AttemptError | None = None
    finished: bool = False
    holder: str | None = None

    @classmethod
    def of_error(cls, error: BaseException) -> AttemptResult:
        """An attempt that ended with this error."""
        return cls(error=error_of(error))

    def packed(self) -> dict[str, Any]:
        """The result as JSON-compatible data."""
        return {"value": self.value, "error": self.error and self.error.packed(), "finished": self.finished}

    @classmethod
    def unpacked(cls, data: Mapping[str, Any]) -> AttemptResult:
        """The inverse of `packed`."""
        error = data["error"] and AttemptError.unpacked(data["error"])
        return cls(data["value"], error, data["finished"])


def error_of(error: BaseException) -> AttemptError:
    """What an error means for its run. This function raises nothing, whatever the error is."""
    failure = failure_of(error)
    match error:
        case errors.LeaseLost():
            return AttemptError(None, failure)
        case errors.CancelRequested():
            return AttemptError(Event.CANCELLED, failure)
        case errors.NotHandedOver():
            return AttemptError(Event.SNOOZE, failure)
        case errors.EffectBusy():
            return AttemptError(Event.SNOOZE, failure, after=errors.EffectBusy.PAUSE_SECONDS)
        case errors.Snooze():
            until = _moment(error)
            return AttemptError(Event.FAIL if until is None else Event.SNOOZE, failure, until=until)
        case errors.Permanent():
            return AttemptError(Event.GIVE_UP, failure)
        case errors.Retry():
            return AttemptError(Event.FAIL, failure, after=_seconds(error))
    return AttemptError(Event.FAIL, failure)


def failure_of(error: BaseException, stack: str | None = None) -> Failure:
    """The part of an error that is stored: short and safe to show. The stack is the error's own unless one is given."""
    name = error.kind if isinstance(error, errors.ChildDied) else _type_name(error)
    return Failure(
        (_redacted(message_of(error)[:SEARCHED_CHARACTERS]) or name)[:ERROR_CHARACTERS],
        name,
        _redacted((stack or _stack(error))[-SEARCHED_CHARACTERS:])[-STACK_CHARACTERS:],
        permanent=isinstance(error, errors.Permanent),
    )


def kept_text(value: object, source: str) -> str:
    """The value as JSON text; Permanent if it cannot be stored."""
    try:
        return stored_small(value)
    except ValueError as error:
        raise Permanent(f"what {source} cannot be stored: {error}") from None


def _type_name(error: BaseException) -> str:
    # Not error.__class__.__name__, which a metaclass may override.
    name: str = type.__dict__["__name__"].__get__(type(error))
    return str.__str__(name)


def _stack(error: BaseException) -> str:
    """The stack; without the messages if they cannot be formatted."""
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return "".join(traceback.format_tb(error.__traceback__))


def _redacted(text: str) -> str:
    """The text without secrets; empty if it cannot be searched, for example for lack of memory."""
    try:
        return fit_to_keep(text)
    except Exception:
        return ""


def _seconds(error: errors.Retry) -> float | None:
    """The seconds after which to retry; None if they are not given or not usable."""
    try:
        after = float(error.after)  # type: ignore[arg-type]
    except Exception:
        return None
    return after if 0 <= after <= errors.LONGEST_WAIT.total_seconds() else None


def _moment(error: errors.Snooze) -> datetime | None:
    """The time until which to wait; None if it is not usable."""
    try:
        return error.until.astimezone(UTC) if error.until.utcoffset() is not None else None
    except Exception:
        return None
