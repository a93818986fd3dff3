"""Errors that end an attempt: found by its worker or raised by its handler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rowcall.base.errors.process import RowcallError

# How long a handler may ask to wait.
LONGEST_WAIT = timedelta(days=366)


class LeaseLost(RowcallError):
    """This worker's lease is lost; its writes are refused."""

    def __init__(self, run_id: int, lease_no: int) -> None:
        self.run_id = run_id
        self.lease_no = lease_no
        super().__init__(f"lease {lease_no} of run {run_id} is over: another worker or an operator has the run now")


class CancelRequested(RowcallError):
    """An operator asked for this run to be cancelled; raised by `run.check()`; do not catch it."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"run {run_id} was asked to be cancelled")


class TimeLimitExceeded(RowcallError):
    """The handler took longer than its job type allows."""

    def __init__(self, job_type: str, seconds: float) -> None:
        super().__init__(
            f"the handler of {job_type} took longer than its limit of {seconds:g} seconds; raise the type's"
            " time_limit, or let the handler do less at a time"
        )


class TooManyStuck(RowcallError):
    """As many handler threads as the worker has places are stuck beyond their time limits, and cannot be ended."""

    def __init__(self, threads: int) -> None:
        super().__init__(
            f"{threads} handlers are stuck beyond their time limits, and a thread cannot be ended: this worker ends, so"
            " that its service manager starts it again; give such types isolated=True, whose child processes can be"
            " ended"
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
            super().__init__(f"{child} was ended by {signal_name}; the attempt has the details")


class NoChild(RowcallError):
    """An isolated run's child process could not be started, or was lost."""

    def __init__(self, run_id: int, reason: str) -> None:
        super().__init__(f"run {run_id} has no child process: {reason}")


class Retry(RowcallError):
    """Raised by a handler: the attempt failed; retry after so many seconds (default: the type's backoff)."""

    def __init__(self, reason: str = "the handler asked to be tried again", after: float | None = None) -> None:
        self.after = None if after is None else float(after)
        if self.after is not None and not 0 <= self.after <= LONGEST_WAIT.total_seconds():
            raise ValueError(
                f"Retry(after={after!r}) must be from 0 to {LONGEST_WAIT.total_seconds():.0f} seconds, a year"
            )
        super().__init__(reason)


class EffectBusy(RowcallError):
    """Another run is performing the same effect: the run waits by the database's clock, and uses up no attempt."""

    # By then the other run has ended, or lost its lease.
    PAUSE_SECONDS = 15.0


class Permanent(RowcallError):
    """Raised by a handler: the error is permanent, so the run is given up at once."""


class Snooze(RowcallError):
    """Raised by a handler: not now; the run waits until then, and its attempt is not held against it."""

    def __init__(self, until: datetime, reason: str = "the handler asked to wait") -> None:
        if until.tzinfo is None:
            raise ValueError(f"Snooze(until={until!r}) needs a time with an offset, such as datetime.now(UTC)")
        if until - datetime.now(UTC) > LONGEST_WAIT:
            raise ValueError(f"Snooze(until={until!r}) is more than a year away; enqueue the run for that time instead")
        self.until = until
        super().__init__(reason)
