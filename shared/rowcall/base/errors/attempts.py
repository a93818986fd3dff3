"""Errors that end an attempt: found by its worker or raised by its handler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rowcall.base.errors.process import RowcallError

# The longest wait that a handler can request.
LONGEST_WAIT = timedelta(days=366)


class LeaseLost(RowcallError):
    """This worker has lost its lease, so its writes are refused."""

    def __init__(self, run_id: int, lease_no: int) -> None:
        self.run_id = run_id
        self.lease_no = lease_no
        super().__init__(f"lease {lease_no} of run {run_id} is lost: another worker or an operator has taken the run")


class CancelRequested(RowcallError):
    """An operator asked to cancel this run; `run.check()` raises this; do not catch it."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"an operator asked to cancel run {run_id}")


class TimeLimitExceeded(RowcallError):
    """The handler took longer than its job type allows."""

    def __init__(self, job_type: str, seconds: float) -> None:
        super().__init__(
            f"the handler of {job_type} took longer than its limit of {seconds:g} seconds; raise the type's"
            " time_limit, or make each run do less"
        )


class TooManyStuck(RowcallError):
    """The number of handlers stuck beyond their time limits has reached the worker's number of threads."""

    def __init__(self, threads: int) -> None:
        super().__init__(
            f"{threads} handlers are stuck beyond their time limits, and threads cannot be killed: this worker exits,"
            " so that its service manager restarts it; set isolated=True on their job types, because child processes"
            " can be killed"
        )


class MemoryCapExceeded(RowcallError):
    """The handler needed more memory than its job type allows."""

    def __init__(self, job_type: str, mebibytes: int) -> None:
        super().__init__(
            f"the handler of {job_type} needed more memory than its cap of {mebibytes} MiB; raise the type's"
            " memory_cap, or make the handler keep less in memory"
        )


class ChildDied(RowcallError):
    """The child process of an isolated run ended without a result; `kind` is the name of the signal, or Exit."""

    def __init__(self, run_id: int, code: int, signal_name: str = "") -> None:
        self.kind = signal_name or "Exit"
        child = f"the child process of run {run_id}"
        if not signal_name:
            super().__init__(f"{child} ended with exit code {code} and no result: a handler must return or raise")
        elif signal_name == "SIGKILL":
            super().__init__(f"{child} was killed by SIGKILL, not by a worker: the machine may be short of memory")
        else:
            details = f"`rowcall runs show {run_id} --wide` has the details"
            super().__init__(f"{child} was killed by {signal_name}; {details}")


class NoChild(RowcallError):
    """An isolated run's child process could not be started, or was lost."""

    def __init__(self, run_id: int, reason: str) -> None:
        super().__init__(f"run {run_id} has no child process: {reason}")


class Retry(RowcallError):
    """Raised by a handler: the attempt failed; retry after this many seconds (default: the type's backoff)."""

    def __init__(self, reason: str = "the handler asked for a retry", after: float | None = None) -> None:
        if not (after is None or isinstance(after, int | float)):
            raise TypeError(f"Retry(after={after!r}) must be a number of seconds, such as 60")
        self.after = None if after is None else float(after)
        if self.after is not None and not 0 <= self.after <= LONGEST_WAIT.total_seconds():
            raise ValueError(
                f"Retry(after={after!r}) must be from 0 to {LONGEST_WAIT.total_seconds():.0f} seconds (a year)"
            )
        super().__init__(reason)


class NotHandedOver(RowcallError):
    """The broker has not confirmed a run's message: the run waits, and its attempt does not count."""


class EffectBusy(RowcallError):
    """Another run is performing the same effect: this run waits, and its attempt does not count."""

    # By then, the other run has usually ended; otherwise this run waits again.
    PAUSE_SECONDS = 15.0


class Permanent(RowcallError):
    """Raised by a handler: another attempt cannot help, so the run is dead at once."""


class Snooze(RowcallError):
    """Raised by a handler: the run waits until this time, and its attempt does not count."""

    def __init__(self, until: datetime, reason: str = "the handler asked to wait") -> None:
        if not isinstance(until, datetime):
            raise TypeError(f"Snooze(until={until!r}) must be a time, such as datetime.now(UTC) + timedelta(minutes=5)")
        if until.tzinfo is None:
            raise ValueError(f"Snooze(until={until!r}) needs a time with an offset, such as datetime.now(UTC)")
        if until - datetime.now(UTC) > LONGEST_WAIT:
            raise ValueError(f"Snooze(until={until!r}) is more than a year away; enqueue a new run for that time")
        self.until = until
        super().__init__(reason)
