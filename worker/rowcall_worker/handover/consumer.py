"""A consumer: performs runs that were handed over, in the threads that receive their messages."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from rowcall import __version__
from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.base.tracing import exporter
from rowcall.job_types import Catalogue
from rowcall.job_types.handover import WAIT_SECONDS
from rowcall.local_postgres.url import database_url
from rowcall.queue import Lease, begin, give_back, whose
from rowcall.queue.claims.holders import is_unbegun
from rowcall.queue.lease import CONSUMER
from rowcall.queue.workers import Registration
from rowcall.schema import check_revision
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.attempt.runner import INTERRUPTIONS, Runner
from rowcall_worker.handover.declared import declared
from rowcall_worker.runtime.completer import Completer
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link, Outage
from rowcall_worker.runtime.heartbeat import Heartbeat
from rowcall_worker.runtime.in_flight import AGAIN_SECONDS, InFlight
from rowcall_worker.runtime.watchdog import Watchdog

# How long, and how often, to look whether the worker that has sent a message has let go of its run.
LET_GO_SECONDS, LET_GO_STEP_SECONDS = 5.0, 0.1

# How long a statement waits for a locked row: the other threads wait meanwhile, and it is tried again.
LOCK_SECONDS = 0.001

NOT_HANDED_OVER = "its app does not hand this job type over"
STOPPED = "the consumer was stopped before the run was finished"


class NoThreads:
    """The threads belong to the consumer: one whose handler exceeds its time limit stays busy."""

    def replace_thread(self, run: InFlightRun) -> int:
        """Leave the thread to its handler."""
        return 0


@dataclass
class ConsumersHeartbeat(Heartbeat):
    """Renews the leases of a consumer, and writes the ends that no thread of a handler writes."""

    write_ends: Callable[[], object] = field(kw_only=True)

    def _show_alive(self, connection: PgConnection) -> None:
        """Do nothing: a consumer is no worker that claims runs."""

    def tick(self) -> None:
        """Also write the end of a run that has exceeded its time limit."""
        super().tick()
        self.write_ends()


class Consumer:
    """What one process shares: its name, its connections, and the threads that keep leases and time limits."""

    def __init__(self) -> None:
        chosen, types, handlers = declared()
        logs.configure(chosen)
        exporter.configure("rowcall-consumer")
        self._types = types
        self._leases = {
            name: job_type.lease or chosen.lease for name, job_type in types.items() if job_type.handover is not None
        }
        # How long to try to begin a run: until its message is lost.
        self._patience = max((one.handover.wait for one in types.values() if one.handover), default=WAIT_SECONDS)
        self._kept = ExitStack()
        url = self._kept.enter_context(database_url(chosen))
        host, outage = socket.gethostname(), Outage()
        self.name = f"{CONSUMER}{host}:{os.getpid()}:{secrets.token_hex(3)}"
        self._in_flight = InFlight(threads=1)
        self._completer = Completer(self._in_flight, types)
        self._link = Link(url, "rowcall consumer", outage, lock_seconds=LOCK_SECONDS)
        self._runner = Runner.of(handlers, Connections(url, outage.answers), chosen)
        self._fits = False
        # One statement at a time: all threads share the connection.
        self._turn = threading.Lock()
        self._start(url, outage, chosen)

    def _start(self, url: str, outage: Outage, chosen: Settings) -> None:
        """Start the threads that keep leases and time limits."""
        interval = min([chosen.heartbeat, *(lease / 3 for lease in self._leases.values())])
        here = Registration(self.name, socket.gethostname(), os.getpid(), __version__, [], [], 1, interval)
        link = Link(url, "rowcall consumer heartbeat", outage)
        heartbeat = ConsumersHeartbeat(
            self._in_flight, link, here, self._leases, interval, write_ends=self._write_late_ends
        )
        limits = {name: limit for name in self._leases if (limit := self._types[name].time_limit) is not None}
        Watchdog(self._in_flight, NoThreads(), limits, outage.answers).start()
        heartbeat.start()

    @property
    def failed(self) -> bool:
        """Whether one of its threads has ended with an error, so that another consumer must take its place."""
        return self._in_flight.failure is not None

    def perform(self, run_id: int, lease_no: int) -> bool:
        """Begin, attempt and finish a run; return whether it was begun."""
        run = self._begin(run_id, lease_no)
        if run is None:
            return False
        token = logs.RUN.set((run_id, lease_no))
        try:
            result = self._runner.attempt(run)
        except BaseException as error:
            # Celery's soft time limit may raise anywhere: the error ends the attempt.
            result = AttemptResult.of_error(error)
            run.interrupted = error if isinstance(error, INTERRUPTIONS) else None
        finally:
            logs.RUN.reset(token)
        if run.interrupted is not None and not result.finished:
            self._release(run)
        self._in_flight.settle(run, result)
        self._write(run)
        if run.interrupted is not None:
            raise run.interrupted
        return True

    def _release(self, run: InFlightRun) -> None:
        """Give the run back unfinished, because its process is being stopped; unless its time limit came first."""
        with self._turn:
            self._completer.release(self._link, self._in_flight.abandon(run), STOPPED)
            with suppress(*CONNECTION_ERRORS):  # the counts of a process that ends without a database are lost
                self._in_flight.counter.write(self._link.get(), self.name)

    def _begin(self, run_id: int, lease_no: int) -> InFlightRun | None:
        """Begin the run, or log why its message is refused; without the database, try as long as the message may wait.

        Between two tries, other threads may write, so that a locked row delays only its own run.
        """
        until, repeated = elapsed() + self._patience, False
        while True:
            with self._turn:
                try:
                    return self._begun(run_id, lease_no, repeated)
                except CONNECTION_ERRORS as error:
                    pause = self._link.lost(error)
                    if elapsed() >= until:
                        raise
            repeated = True  # it may have been committed
            time.sleep(pause)  # nothing signals that the database is back, or that the row is unlocked

    def _begun(self, run_id: int, lease_no: int, repeated: bool) -> InFlightRun | None:
        """Ask once for the lease."""
        if any((lease.run_id, lease.lease_no) == (run_id, lease_no) for lease in list(self._in_flight.runs)):
            _refuse(run_id, lease_no, f"{self.name} has begun the run")
            return None
        asked_at, connection = elapsed(), self._connection()
        begun = begin(connection, run_id, lease_no, self.name, self._leases, repeated)
        reason = self._refusal(connection, run_id, lease_no) if begun is None else ""
        self._link.works()
        if begun is None:
            _refuse(run_id, lease_no, reason)
            return None
        claimed = begun.claimed
        run = InFlightRun(self.name, claimed, asked_at + self._leases[claimed.job_type])
        run.cancel_requested, run.begun_at = begun.cancel_requested, elapsed()
        # The calling thread begins it, so that it need not wait for one.
        self._in_flight.runs[run.lease] = run
        self._in_flight.counter.begun(run)
        return run

    def _refusal(self, connection: PgConnection, run_id: int, lease_no: int) -> str:
        """Return why the message begins nothing; a run that a worker performs in future is given back to its queue."""
        until = elapsed() + LET_GO_SECONDS
        while True:
            row = whose(connection, run_id)
            reason = _reason(row, lease_no, self._types)
            if row is None or reason != NOT_HANDED_OVER:
                return reason
            if is_unbegun(row["locked_by"]):
                message = Lease(row["locked_by"], run_id, lease_no)
                given_back = give_back(connection, message, f"{self.name} has the message: {reason}")
                return f"{reason}: the run is {given_back}" if given_back is not None else "the lease is over"
            if elapsed() >= until:
                return f"{reason}, and {row['locked_by']} has not let go of the run"
            time.sleep(LET_GO_STEP_SECONDS)  # nothing signals that the worker has let go

    def _connection(self) -> PgConnection:
        """Return the connection of this process, after it has been found once to fit this code."""
        connection = self._link.get()
        if not self._fits:
            check_revision(connection)
            self._in_flight.counter.write(connection, self.name)  # counting begins with the first call
            self._fits = True
        return connection

    def _write(self, run: InFlightRun) -> None:
        """Write the end of this run; without the database, try until its lease is over."""
        while run.lease in self._in_flight.runs:
            pause = self._write_ends()
            if run.lease in self._in_flight.runs:
                if elapsed() > run.deadline:
                    self._completer.leave([run], "its result could not be written before its lease expired")
                    self._in_flight.drop([run])
                    return
                time.sleep(pause)  # nothing signals that the database is back, or that a row is unlocked

    def _write_late_ends(self) -> None:
        """Write the ends that no thread writes, unless another statement waits: leases must be renewed meanwhile."""
        if self._turn.acquire(blocking=False):
            try:
                self._write_all()
            finally:
                self._turn.release()

    def _write_ends(self) -> float:
        """Write all ends that are not written yet; return the seconds to wait before the next try."""
        with self._turn:
            return self._write_all()

    def _write_all(self) -> float:
        ended = self._in_flight.collect()
        if not ended:
            return AGAIN_SECONDS
        try:
            connection = self._link.get()
            succeeded = self._completer.write_apart(connection, ended)
            self._completer.write_one_by_one(connection, ended, succeeded)
            if not self._in_flight.runs:
                # Nothing tells this process that it will be ended, so its counts must not wait for a heartbeat.
                self._in_flight.counter.write(connection, self.name)
            self._link.works()
        except CONNECTION_ERRORS as error:
            self._completer.keep(ended)
            return self._link.lost(error)
        return AGAIN_SECONDS


def _refuse(run_id: int, lease_no: int, reason: str) -> None:
    log().info(LogEvent.MESSAGE_REFUSED, run_id=run_id, lease_no=lease_no, reason=reason)


def _reason(row: Mapping[str, object] | None, lease_no: int, types: Catalogue) -> str:
    """Say why the message with this lease begins nothing."""
    if row is None:
        return "there is no such run"
    if row["lease_no"] != lease_no or row["status"] != Status.RUNNING:
        return f"the lease is over: the run is {row['status']}, and its last lease has the number {row['lease_no']}"
    holder, job_type = str(row["locked_by"]), str(row["job_type"])
    if holder.startswith(CONSUMER):
        return f"{holder} has begun the run"
    return types.lacks(job_type) or NOT_HANDED_OVER
