"""Finish: what an attempt's outcome does to its run."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from shared import errors
from shared.database import Connection, without_password
from shared.job_types import Catalogue
from shared.logs import LogEvent, log
from shared.queue import Ending, Failure, fail, give_up, snooze, succeed
from shared.status import Status
from worker.executor import Outcome

ERROR_CHARACTERS = 1000
STACK_CHARACTERS = 8000

STORY = {
    Status.FAILED: LogEvent.RUN_FAILED,
    Status.DEAD: LogEvent.RUN_DEAD,
    Status.QUEUED: LogEvent.RUN_SNOOZED,
}


def finish(connection: Connection, worker: str, catalogue: Catalogue, outcomes: Sequence[Outcome]) -> list[Status]:
    """Write all outcomes in the caller's transaction; the statuses written, without those whose lease was lost."""
    succeeded = [outcome for outcome in outcomes if outcome.error is None]
    written = succeed(
        connection, worker, [(done.claimed.run_id, done.claimed.lease_no, done.result) for done in succeeded]
    )
    for outcome in succeeded:
        if outcome.claimed.run_id in written:
            log().debug(LogEvent.RUN_SUCCEEDED, **_named(outcome))
        else:
            log().warning(LogEvent.LEASE_LOST, **_named(outcome))
    others = [_finish_failed(connection, worker, catalogue, outcome) for outcome in outcomes if outcome.error]
    return [Status.SUCCEEDED] * len(written) + [status for status in others if status]


def _finish_failed(connection: Connection, worker: str, catalogue: Catalogue, outcome: Outcome) -> Status | None:
    """Decide between another attempt and none."""
    claimed, error = outcome.claimed, outcome.error
    ending = Ending(worker, claimed.run_id, claimed.lease_no, claimed.attempt)
    if isinstance(error, errors.Snooze):
        status = snooze(connection, ending, error.until, str(error))
    elif isinstance(error, errors.Permanent) or claimed.attempt >= claimed.max_attempts:
        status = give_up(connection, ending, failure_of(error))
    else:
        asked = error.after if isinstance(error, errors.Retry) else None
        delay = catalogue[claimed.job_type].backoff.delay(claimed.attempt) if asked is None else asked
        status = fail(connection, ending, failure_of(error), delay)
    if status is None:
        log().warning(LogEvent.LEASE_LOST, **_named(outcome))
    else:
        log().warning(STORY[status], error=str(error), error_type=type(error).__name__, **_named(outcome))
    return status


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
    """Text that PostgreSQL can store, and that gives no password away."""
    return without_password(text).replace("\0", "").encode(errors="replace").decode()


def _named(outcome: Outcome) -> dict[str, object]:
    claimed = outcome.claimed
    return {
        "run_id": claimed.run_id,
        "lease_no": claimed.lease_no,
        "job_type": claimed.job_type,
        "attempt": claimed.attempt,
    }
