"""The completer: writes the ends of attempts, for the producers and for a stopping worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import psycopg2
from psycopg2.errors import LockNotAvailable

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.errors import NotHandedOver, Permanent, Snooze
from rowcall.base.errors.sentences import one_line
from rowcall.base.logs import LogEvent, log
from rowcall.base.outages import is_outage, is_passing
from rowcall.job_types import Catalogue
from rowcall.queue import Done, LogLine, cancelled, fail, give_up, owned, release, snooze, succeed, unclaim, unlocked
from rowcall.queue.finish import SHORTEST_SNOOZE_SECONDS
from rowcall.queue.run_log import portions
from rowcall.queue.series.record import End
from rowcall.status import Event, Status
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptError, error_of, failure_of
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.handover.let_go import let_go
from rowcall_worker.runtime.in_flight import InFlight
from rowcall_worker.runtime.run_logs import REFUSALS, unwritten, with_lines

LOG_EVENTS = {
    Status.FAILED: LogEvent.RUN_FAILED,
    Status.DEAD: LogEvent.RUN_DEAD,
    Status.QUEUED: LogEvent.RUN_SNOOZED,
    Status.CANCELLED: LogEvent.RUN_CANCELLED,
}

# How an error ended the attempt, by the run's new status.
ENDS = {
    Status.FAILED: End.FAILED,
    Status.DEAD: End.DEAD,
    Status.QUEUED: End.SNOOZED,
    Status.CANCELLED: End.CANCELLED,
}

# How long and how often a stopping worker tries to give back runs whose rows are locked, perhaps by its own heartbeat.
RELEASE_SECONDS = 5.0
LOCKED_STEP_SECONDS = 0.05

# How often to write the end of a run on which the database has reported an error that may pass, such as a deadlock.
TRIES_MOST = 3

# How many of the runs that a worker leaves behind are named in its last log line.
NAMED_MOST = 100


@dataclass(frozen=True)
class Completer:
    """Writes the results of runs in flight, and removes them from flight."""

    in_flight: InFlight
    catalogue: Catalogue

    def write_apart(self, connection: PgConnection, ended: list[InFlightRun]) -> list[InFlightRun]:
        """Write the errors of failed runs, and the successes of runs that logged; return the other runs that succeeded.

        Each error is a separate statement, so that one refused by the database does not hold up the others.  A run
        whose row is locked is removed from the list and retried later.
        """
        let_go(connection, self.in_flight, ended)
        written = [run for run in ended if run.result.finished]  # by run.transaction() of their handlers
        self.in_flight.written(written, [Status.SUCCEEDED] * len(written))
        self.in_flight.counter.ended(written, End.SUCCEEDED)
        for run in list(ended):
            if run.result.error is not None:
                self._end_with_error(connection, ended, run, run.result.error)
        succeeded = {run.lease: run for run in ended if not run.result.finished and run.result.error is None}
        logged = unwritten(succeeded.values())
        for portion in portions(logged):
            self._write_portion(connection, ended, [succeeded[lease] for lease in portion])
        return [run for lease, run in succeeded.items() if lease not in logged]

    def _write_portion(self, connection: PgConnection, ended: list[InFlightRun], runs: Sequence[InFlightRun]) -> None:
        try:
            self.written(runs, self._succeed(connection, runs))
        except LockNotAvailable:
            self.write_one_by_one(connection, ended, self.put_off_locked(connection, ended, runs))
        except psycopg2.Error as error:
            if not concerns_one_run(error):
                raise
            self.write_one_by_one(connection, ended, runs)

    def _succeed(self, connection: PgConnection, runs: Sequence[InFlightRun]) -> set[int]:
        return with_lines(runs, lambda lines: succeed(connection, self.successes(runs), lines))

    def put_off_locked(
        self, connection: PgConnection, ended: list[InFlightRun], succeeded: Sequence[InFlightRun]
    ) -> list[InFlightRun]:
        """Postpone the successes whose rows are locked; return those that are left to write."""
        free = unlocked(connection, [run.lease for run in succeeded])
        self._put_off(ended, [run for run in succeeded if run.lease not in free])
        return [run for run in succeeded if run.lease in free]

    def _end_with_error(
        self, connection: PgConnection, ended: list[InFlightRun], run: InFlightRun, error: AttemptError
    ) -> None:
        try:
            status = self._write_error(connection, run, error)
        except psycopg2.Error as refused:
            self._set_aside(ended, run, refused)
        else:
            if status is not None:
                self.in_flight.counter.ended([run], ENDS[status])
            self.in_flight.written([run], [status] if status else [])

    def _put_off(self, ended: list[InFlightRun], locked: Sequence[InFlightRun]) -> None:
        self.in_flight.put_off(locked)
        for run in locked:
            ended.remove(run)

    def successes(self, succeeded: Sequence[InFlightRun]) -> list[Done]:
        """What `exchange` needs to write the successes of these runs."""
        return [Done(run.lease, run.result.value) for run in succeeded]

    def written(self, succeeded: Sequence[InFlightRun], run_ids: set[int]) -> None:
        """Record that these runs were sent as successes, and that those with these ids were written."""
        written = succeeded
        if len(run_ids) < len(succeeded):
            written = [run for run in succeeded if run.claimed.run_id in run_ids]
            for run in succeeded:
                if run.claimed.run_id not in run_ids:
                    log().warning(LogEvent.LEASE_LOST, **named(run))
        self.in_flight.counter.ended(written, End.SUCCEEDED)
        self.in_flight.written(succeeded, [Status.SUCCEEDED] * len(run_ids))

    def write_one_by_one(
        self, connection: PgConnection, ended: list[InFlightRun], succeeded: Sequence[InFlightRun]
    ) -> None:
        """Write results one by one after the database refused a batch; a refused result fails its run."""
        for run in succeeded:
            try:
                self.written([run], self._succeed(connection, [run]))
            except REFUSALS as refused:
                error = error_of(Permanent(f"the result cannot be stored: {refused.diag.message_primary}"))
                self._end_with_error(connection, ended, run, error)
            except psycopg2.Error as refused:
                self._set_aside(ended, run, refused)

    def _set_aside(self, ended: list[InFlightRun], run: InFlightRun, error: psycopg2.Error) -> None:
        """Set a run aside whose end the database does not take now, so that others are written; raise other errors."""
        if not concerns_one_run(error):
            raise error
        if not isinstance(error, LockNotAvailable):
            run.refusals += 1
        if is_passing(error) and run.refusals < TRIES_MOST:
            self._put_off(ended, [run])
            return
        self.leave([run], f"the database refused its end: {one_line(str(error))}")
        self.in_flight.given_up.append(run.lease)
        self.in_flight.written([run], [])

    def keep(self, ended: Sequence[InFlightRun]) -> None:
        """Keep, for the next try, what could not be written because the connection to the database was lost."""
        self.in_flight.put_back(ended)

    def unclaim(self, link: Link, runs: Sequence[InFlightRun], seconds: float) -> None:
        """Unclaim runs that no handler has begun; retry those whose rows are locked for this many seconds."""
        until = elapsed() + seconds
        left = list(runs)
        try:
            while left:
                left = self._unclaim(link.get(), left)
                if elapsed() >= until:
                    break
                if left:
                    time.sleep(LOCKED_STEP_SECONDS)  # there is no event for the end of a row lock
        except CONNECTION_ERRORS as error:
            link.lost(error)
        self.leave(left, "it was not returned: its row is locked, or the database is unreachable")
        self.in_flight.drop(runs)

    def _unclaim(self, connection: PgConnection, runs: Sequence[InFlightRun]) -> list[InFlightRun]:
        """Try once to unclaim these runs; report those whose lease is lost, and return those whose rows are locked."""
        returned = unclaim(connection, [run.lease for run in runs])
        left = [run for run in runs if run.claimed.run_id not in returned]
        ours = owned(connection, [run.lease for run in left])
        for run in left:
            if run.lease not in ours:
                log().warning(LogEvent.LEASE_LOST, **named(run))
        return [run for run in left if run.lease in ours]

    def release(self, link: Link, runs: Sequence[InFlightRun], reason: str) -> None:
        """Release begun runs that will not finish here; a run whose row stays locked keeps its lease."""
        until = elapsed() + RELEASE_SECONDS
        left = deque(runs)
        locked: list[InFlightRun] = []
        while left:
            run = left.popleft()
            try:
                released = self._release(link.get(), run, reason)
            except LockNotAvailable:
                (left if elapsed() < until else locked).append(run)
            except CONNECTION_ERRORS as error:
                link.lost(error)
                self.leave([run], "it could not be released")
                if is_outage(error):
                    break
            else:
                if released:
                    self.in_flight.counter.ended([run], End.RELEASED if released is Status.QUEUED else ENDS[released])
                    log().info(LogEvent.RUN_RELEASED, **named(run))
        self.leave(left, "it could not be released")
        self.leave(locked, "it could not be released: its row is locked")
        self.in_flight.drop(runs)

    def _release(self, connection: PgConnection, run: InFlightRun, reason: str) -> Status | None:
        return with_lines(
            [run],
            lambda lines: release(connection, run.lease, reason, run.forensics, lines.get(run.lease, ())),
        )

    def leave(self, runs: Iterable[InFlightRun], reason: str) -> None:
        """Log the runs that stay running until their leases expire, although no worker works on them."""
        for run in runs:
            log().warning(LogEvent.RUN_LEFT, reason=reason, **named(run))

    def _write_error(self, connection: PgConnection, run: InFlightRun, error: AttemptError) -> Status | None:
        """Write one error; return the new status of the run, or None if its lease was lost."""
        failure = error.failure
        try:
            status = with_lines([run], lambda lines: self._end(connection, run, error, lines.get(run.lease, ())))
        except REFUSALS as refused:
            failure = failure_of(Permanent(refused.diag.message_primary or str(refused)))
            unwritable = failure
            status = with_lines(
                [run], lambda lines: give_up(connection, run.lease, unwritable, lines.get(run.lease, ()))
            )
        if status is None:
            log().warning(LogEvent.LEASE_LOST, **named(run))
        else:
            log().warning(LOG_EVENTS[status], error=failure.error, error_type=failure.error_type, **named(run))
        return status

    def _end(
        self, connection: PgConnection, run: InFlightRun, error: AttemptError, log: Sequence[LogLine]
    ) -> Status | None:
        """Decide whether another attempt follows."""
        claimed, lease, failure = run.claimed, run.lease, replace(error.failure, forensics=run.forensics)
        if error.event is None:
            self.in_flight.given_up.append(lease)
            return None
        if error.event is Event.SNOOZE:
            pause: float | None = error.after or SHORTEST_SNOOZE_SECONDS
            kind = Snooze.__name__
            if failure.error_type == NotHandedOver.__name__:
                pause, kind = None, failure.error_type  # the broker has a pause, and the run is as late as before
            return snooze(connection, lease, error.until, failure.error, failure.forensics, pause, log, kind)
        if error.event is Event.CANCELLED:
            status = cancelled(connection, lease, failure.forensics, log)
            if status is not None:
                return status
            # No cancellation was requested, so treat this like any other error.
        if error.event is Event.GIVE_UP or claimed.attempt >= claimed.max_attempts:
            return give_up(connection, lease, failure, log)
        delay = self.catalogue[claimed.job_type].backoff.delay(claimed.attempt) if error.after is None else error.after
        return fail(connection, lease, failure, delay, log)


def concerns_one_run(error: psycopg2.Error) -> bool:
    """Return whether the error may concern the end of one run only: an app's trigger may raise anything.

    Otherwise it is an outage, or a table or a right is missing.
    """
    return not (is_outage(error) or isinstance(error, psycopg2.ProgrammingError | psycopg2.NotSupportedError))


def log_abandoned(worker: str, runs: Sequence[InFlightRun]) -> None:
    """Log, in one line, the runs of a worker that ends at once, and when the last of their leases expires."""
    left = timedelta(seconds=max((run.deadline for run in runs), default=0.0) - elapsed())
    log().warning(
        LogEvent.WORKER_ENDED,
        worker=worker,
        runs=len(runs),
        run_ids=[run.claimed.run_id for run in runs[:NAMED_MOST]],
        leases_end_at=(datetime.now(UTC) + left).isoformat(timespec="seconds") if runs else None,
    )


def named(run: InFlightRun) -> dict[str, object]:
    """Return the log fields that identify the attempt."""
    claimed = run.claimed
    return {
        "run_id": claimed.run_id,
        "lease_no": claimed.lease_no,
        "job_type": claimed.job_type,
        "attempt": claimed.attempt,
    }
