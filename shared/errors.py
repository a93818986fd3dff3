"""Every error Rowcall raises on purpose.  Its text says what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime


class RowcallError(Exception):
    """What a person is shown as one sentence, never as a traceback."""

    exit_code = 1


class SettingsError(RowcallError):
    """One or more environment variables hold a value that Rowcall cannot use."""

    exit_code = 2


class DatabaseUnreachable(RowcallError):
    """No connection could be made, or the connection that was there is gone."""

    exit_code = 3


class EmbeddedServerError(DatabaseUnreachable):
    """The embedded PostgreSQL could not be found, made, started or stopped."""


class PortInUse(RowcallError):
    """A port that was asked for by number is taken."""


class SchemaMismatch(RowcallError):
    """The database's schema is not the one this code was written for."""


class DeclarationError(RowcallError):
    """A job type or a handler is declared wrongly; found when the program starts."""


class JobTypeUnknown(RowcallError):
    """A run was asked for whose job type is in no catalogue."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"there is no job type {name!r}; known here: {', '.join(self.known)}")


class RunInvalid(RowcallError):
    """A request for a run has fields that cannot be used; `fields` tells for each what is wrong."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {_sentence(wrong)}" for name, wrong in self.fields.items()))


class KeyConflict(RowcallError):
    """An idempotency key was sent again with other content."""

    def __init__(self, key: str, run_id: int) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(
            f"the idempotency key {key!r} belongs to run {run_id}, which was asked for with other content;"
            " send the same content, or another key"
        )


class RunNotFound(RowcallError):
    """No run has this id."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        super().__init__(f"there is no run {run_id}; `rowcall runs list` shows those that are")


class TransitionRefused(RowcallError):
    """A run's status does not allow what was asked; `allowed` names the events it does allow."""

    def __init__(self, run_id: int, event: str, status: str, allowed: Sequence[str], reason: str = "") -> None:
        self.run_id = run_id
        self.event = event
        self.status = status
        self.allowed = tuple(allowed)
        because = f" ({reason})" if reason else ""
        super().__init__(
            f"run {run_id} is {status}{because}: {event} is not possible now;"
            f" possible: {', '.join(self.allowed) or 'nothing'}"
        )


class LeaseLost(RowcallError):
    """This worker's right to the run is over; whatever it does now must not count."""

    def __init__(self, run_id: int, lease_no: int) -> None:
        self.run_id = run_id
        self.lease_no = lease_no
        super().__init__(f"lease {lease_no} of run {run_id} is over: another worker or an admin has the run now")


class CancelRequested(RowcallError):
    """An admin asked for this run to be cancelled; raised by `run.check()`, and best let through."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"run {run_id} was asked to be cancelled")


class TimeLimitExceeded(RowcallError):
    """The handler took longer than its job type allows."""

    def __init__(self, job_type: str, seconds: float) -> None:
        super().__init__(
            f"the handler of {job_type} took longer than its limit of {seconds:g} seconds; raise the type's"
            " time_limit, or let the handler do less at a time"
        )


class MemoryCapExceeded(RowcallError):
    """The handler needed more memory than its job type allows."""

    def __init__(self, job_type: str, mebibytes: int) -> None:
        super().__init__(
            f"the handler of {job_type} needed more memory than its cap of {mebibytes} MiB; raise the type's"
            " memory_cap, or let the handler hold less at a time"
        )


class ChildDied(RowcallError):
    """The child process of an isolated run ended without an answer; `kind` is the name of the signal, or Exit."""

    def __init__(self, run_id: int, code: int, signal_name: str = "") -> None:
        self.kind = signal_name or "Exit"
        child = f"the child process of run {run_id}"
        if not signal_name:
            super().__init__(f"{child} ended with exit code {code} and no answer: a handler must return or raise")
        elif signal_name == "SIGKILL":
            super().__init__(f"{child} was ended by SIGKILL; no worker sent it, so the machine may be short of memory")
        else:
            super().__init__(f"{child} was ended by {signal_name}; what is known of that stands with the attempt")


class NoChild(RowcallError):
    """There is no child process for an isolated run, or nothing is known of it any more."""

    def __init__(self, run_id: int, reason: str) -> None:
        super().__init__(f"run {run_id} has no child process: {reason}")


class Retry(RowcallError):
    """Raised by a handler: this attempt failed, try again after so many seconds (default: the type's backoff)."""

    def __init__(self, reason: str = "the handler asked to be tried again", after: float | None = None) -> None:
        self.after = None if after is None else float(after)
        super().__init__(reason)


class Permanent(RowcallError):
    """Raised by a handler: trying again cannot help, so the run is given up at once."""


class Snooze(RowcallError):
    """Raised by a handler: not now; the run waits until then, and its attempt is not held against it."""

    def __init__(self, until: datetime, reason: str = "the handler asked to wait") -> None:
        if until.tzinfo is None:
            raise ValueError(f"Snooze(until={until!r}) needs a time with an offset, such as datetime.now(UTC)")
        self.until = until
        super().__init__(reason)


def _sentence(wrong: object) -> str:
    """What is wrong with a field, as words: marshmallow nests lists and mappings."""
    if isinstance(wrong, Mapping):
        return ", ".join(f"{name}: {_sentence(inner)}" for name, inner in wrong.items())
    if isinstance(wrong, (list, tuple)):
        return " ".join(_sentence(inner) for inner in wrong)
    return str(wrong)
