"""Finish: what an attempt's verdict does to its run."""

from __future__ import annotations

from dataclasses import replace

from rowcall.base.database import Connection
from rowcall.base.logs import LogEvent, log
from rowcall.job_types import Catalogue
from rowcall.queue import Ending, cancelled, fail, give_up, snooze
from rowcall.status import Event, Status
from rowcall_worker.attempt.result import AttemptError
from rowcall_worker.runtime.in_flight import InFlightRun

LOG_EVENTS = {
    Status.FAILED: LogEvent.RUN_FAILED,
    Status.DEAD: LogEvent.RUN_DEAD,
    Status.QUEUED: LogEvent.RUN_SNOOZED,
    Status.CANCELLED: LogEvent.RUN_CANCELLED,
}


def finish_unsuccessful(
    connection: Connection, worker: str, catalogue: Catalogue, run: InFlightRun, verdict: AttemptError
) -> Status | None:
    """Write one verdict: the run's status now, or None when its lease was lost."""
    failure = verdict.failure
    status = None if verdict.event is None else _write(connection, worker, catalogue, run, verdict)
    if status is None:
        log().warning(LogEvent.LEASE_LOST, **named(run))
    else:
        log().warning(LOG_EVENTS[status], error=failure.error, error_type=failure.error_type, **named(run))
    return status


def _write(
    connection: Connection, worker: str, catalogue: Catalogue, run: InFlightRun, verdict: AttemptError
) -> Status | None:
    """Decide between another attempt and none."""
    claimed, failure = run.claimed, replace(verdict.failure, forensics=run.forensics)
    ending = Ending(worker, claimed.run_id, claimed.lease_no, claimed.attempt)
    if verdict.until is not None:
        return snooze(connection, ending, verdict.until, failure.error, failure.forensics)
    if verdict.event is Event.CANCELLED:
        status = cancelled(connection, ending, failure.forensics)
        if status is not None:
            return status
        # Nobody asked for it: then it is an error like any other.
    if verdict.event is Event.GIVE_UP or claimed.attempt >= claimed.max_attempts:
        return give_up(connection, ending, failure)
    delay = catalogue[claimed.job_type].backoff.delay(claimed.attempt) if verdict.after is None else verdict.after
    return fail(connection, ending, failure, delay)


def named(run: InFlightRun) -> dict[str, object]:
    """The fields by which a log line tells which attempt it speaks of."""
    claimed = run.claimed
    return {
        "run_id": claimed.run_id,
        "lease_no": claimed.lease_no,
        "job_type": claimed.job_type,
        "attempt": claimed.attempt,
    }
