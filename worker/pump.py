"""The pump: one transaction after another that finishes what is done and claims what is due."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psycopg2
from psycopg2.extensions import connection as PgConnection  # noqa: N812 - a class, whatever psycopg2 calls it

from shared import database
from shared.clock import elapsed
from shared.errors import DatabaseUnreachable
from shared.job_types import Catalogue
from shared.logs import LogEvent, log
from shared.queue import Claimed, Ending, claim, release
from shared.status import Status
from worker.executor import Executor, Outcome
from worker.outcomes import finish

# Wait this long after the first failure to reach the database, twice as long after each further one.
RECONNECT_SECONDS = 0.2
RECONNECT_CAP_SECONDS = 10.0

# What the driver raises when the database is gone, restarting, or refusing.
LOST = (psycopg2.OperationalError, psycopg2.InterfaceError, DatabaseUnreachable)


@dataclass
class Pump:
    """One worker's connection to the queue, and what it has done so far."""

    url: str
    worker: str
    catalogue: Catalogue
    leases: Mapping[str, float]
    executor: Executor
    queues: list[str] | None = None
    done: Counter[Status] = field(default_factory=Counter)
    claimed: int = 0
    _unwritten: list[Outcome] = field(default_factory=list)
    _connection: PgConnection | None = None
    _failures: int = 0
    _busy: bool = True

    def step(self, wait: float, limit: int | None = None) -> bool:
        """Finish what has ended, claim what fits; whether there was anything to do."""
        self._unwritten += self.executor.collect(wait)
        room = self.executor.free if limit is None else min(self.executor.free, limit)
        try:
            self._busy = self._exchange(room)
        except LOST as error:
            self._busy = True  # there may be anything to do: nobody could look
            self._lost(error)
        return self._busy

    def _exchange(self, room: int) -> bool:
        """One transaction: outcomes in, claims out.  Nothing counts as done before its commit."""
        connection = self._connected()
        outcomes = self._unwritten
        with connection:
            statuses = finish(connection, self.worker, self.catalogue, outcomes) if outcomes else []
            met = claim(connection, self.worker, self.leases, room, self.queues) if room > 0 else None
        self._unwritten = []
        self.done.update(statuses)
        for run_id, status in met.expired.items() if met else ():
            log().warning(LogEvent.LEASE_EXPIRED, run_id=run_id, status=status)
        if met and met.claimed:
            self.claimed += len(met.claimed)
            self.executor.submit(met.claimed)
        return bool(outcomes or (met and (met.claimed or met.expired)))

    @property
    def idle(self) -> bool:
        """Nothing is running, everything is written, and the last look found nothing due."""
        return not (self.executor.held or self._unwritten or self._busy)

    def release(self, runs: Sequence[Claimed], reason: str) -> None:
        """Give back runs that will not be finished here; without a database their leases run out by themselves."""
        if not runs:
            return
        try:
            with self._connected() as connection:
                for run in runs:
                    ending = Ending(self.worker, run.run_id, run.lease_no, run.attempt)
                    if release(connection, ending, reason):
                        log().info(LogEvent.RUN_RELEASED, run_id=run.run_id, lease_no=run.lease_no)
        except LOST as error:
            self._lost(error)

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> PgConnection:
        if self._connection is None:
            self._connection = database.connect(self.url, "rowcall worker")
            if self._failures:
                log().info(LogEvent.DATABASE_BACK, failures=self._failures)
            self._failures = 0
        return self._connection

    def _lost(self, error: Exception) -> None:
        """Drop the connection, say so once, and wait a little longer each time."""
        if self._failures == 0:
            log().warning(LogEvent.DATABASE_LOST, error=database.without_password(str(error).strip()))
        self.close()
        pause = min(RECONNECT_SECONDS * 2**self._failures, RECONNECT_CAP_SECONDS)
        self._failures += 1
        until = elapsed() + pause
        while (left := until - elapsed()) > 0:
            time.sleep(min(left, RECONNECT_SECONDS))
