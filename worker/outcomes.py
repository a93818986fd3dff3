"""Finish: what an attempt's outcome does to its run, when it was no plain success."""

from __future__ import annotations

import traceback

from shared import errors
from shared.database import Connection
from shared.job_types import Catalogue
from shared.logs import LogEvent, log
from shared.queue import Ending, Failure, cancelled, fail, give_up, snooze
from shared.redaction import redacted
from shared.status import Status
from worker.executor import AlreadyFinished
from worker.hands import HeldRun, Outcome

ERROR_CHARACTERS = 1000
STACK_CHARACTERS = 8000

STORY = {
    Status.FAILED: LogEvent.RUN_FAILED,
    Status.DEAD: LogEvent.RUN_DEAD,
    Status.QUEUED: LogEvent.RUN_SNOOZED,
    Status.CANCELLED: LogEvent.RUN_CANCELLED,
}


def finish_unsuccessful(connection: Connection, worker: str, catalogue: Catalogue, outcome: Outcome) -> Status | None:
    """Write one outcome that is an error: the run's status now, or None when its lease was lost."""
    if isinstance(outcome.error, AlreadyFinished):
        return Status.SUCCEEDED
    status = None if isinstance(outcome.error, errors.LeaseLost) else _write(connection, worker, catalogue, outcome)
    if status is None:
        log().warning(LogEvent.LEASE_LOST, **named(outcome.run))
    else:
        kind = type(outcome.error).__name__
        log().warning(STORY[status], error=_plain(str(outcome.error)), error_type=kind, **named(outcome.run))
    return status


def _write(connection: Connection, worker: str, catalogue: Catalogue, outcome: Outcome) -> Status | None:
    """Decide between another attempt and none."""
    claimed, error = outcome.run.claimed, outcome.error
    ending = Ending(worker, claimed.run_id, claimed.lease_no, claimed.attempt)
    if isinstance(error, errors.Snooze):
        return snooze(connection, ending, error.until, str(error))
    if isinstance(error, errors.CancelRequested):
        return cancelled(connection, ending)
    if isinstance(error, errors.Permanent) or claimed.attempt >= claimed.max_attempts:
        return give_up(connection, ending, failure_of(error))
    asked = error.after if isinstance(error, errors.Retry) else None
    delay = catalogue[claimed.job_type].backoff.delay(claimed.attempt) if asked is None else asked
    return fail(connection, ending, failure_of(error), delay)


def failure_of(error: BaseException | None) -> Failure:
    """What is kept of an error: short, and fit to be shown."""
    text = _plain(str(error)) or type(error).__name__
    stack = _plain("".join(traceback.format_exception(error)))
    return Failure(
        text[:ERROR_CHARACTERS],
        type(error).__name__,
        stack[-STACK_CHARACTERS:],
        permanent=isinstance(error, errors.Permanent),
    )


def _plain(text: str) -> str:
    """Text that PostgreSQL can store, and that gives no secret away."""
    # What cannot be stored goes first: without it, what stood around it may be a secret.
    return redacted(text.replace("\0", "").encode(errors="replace").decode())


def named(run: HeldRun) -> dict[str, object]:
    """The fields by which a log line tells which attempt it speaks of."""
    claimed = run.claimed
    return {
        "run_id": claimed.run_id,
        "lease_no": claimed.lease_no,
        "job_type": claimed.job_type,
        "attempt": claimed.attempt,
    }
