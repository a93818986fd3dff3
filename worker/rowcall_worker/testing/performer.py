"""Perform runs in this process, through a worker's own parts: its claims, handler thread, effects and completer."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rowcall import __version__
from rowcall.base.clock import elapsed
from rowcall.base.errors import CancelRequested, Permanent, Retry, RowcallError, RunNotFound, Snooze
from rowcall.base.errors.sentences import has_status
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall.queue import Claimed, ClaimRequest, claim_suspect, exchange, explain, get_run, sweep, unclaim
from rowcall.queue.claims.lanes import Lane, Position
from rowcall.queue.queues import make_queues
from rowcall.queue.workers import Registration, register
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.gateways import Gateways
from rowcall_worker.handlers import Handler, load_handlers
from rowcall_worker.runtime.completer import Completer
from rowcall_worker.runtime.connection import Link, Outage
from rowcall_worker.runtime.executor import Executor
from rowcall_worker.runtime.in_flight import InFlight
from rowcall_worker.runtime.run_logs import REFUSALS

# Nothing renews the lease, and somebody may look at the handler with a debugger.
LEASE_SECONDS = 86400.0

# Exceptions that end the test, not the attempt, such as pytest.fail() in a handler. Ctrl-C reaches only the main
# thread.
PYTESTS = (pytest.fail.Exception, pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)

# How a handler ends an attempt on purpose.  Gateways' errors are among them.
EXPECTED = (Retry, Permanent, Snooze, CancelRequested)


@dataclass(frozen=True)
class Attempted:
    """One attempt: its claim, and what its handler raised."""

    claimed: Claimed
    exception: BaseException | None

    @property
    def unexpected(self) -> BaseException | None:
        """The handler's exception, unless it is one of the ways to end an attempt."""
        return None if isinstance(self.exception, EXPECTED) else self.exception


class Performer:
    """A worker with one handler thread, which works only when asked to."""

    def __init__(self, settings: Settings, url: str, gateways: Gateways) -> None:
        types = catalogue()
        self._worker = f"{socket.gethostname()}:{os.getpid()}:testing"
        self._raised: BaseException | None = None
        # Threads that a test starts take turns: there is one handler thread.
        self._turn = threading.Lock()
        handlers = {name: self._watched(handler) for name, handler in load_handlers(types, settings.app).items()}
        outage = Outage()
        runner = Runner.of(handlers, Connections(url, outage.answers), settings)
        runner = replace(runner, resources=replace(runner.resources, gateways=gateways))
        self._in_flight = InFlight(threads=1)
        self._ended = self._in_flight.wake_ups.waker()
        # Even isolated types: what they raise and send is visible here.
        self._executor = Executor(self._in_flight, dict.fromkeys(types, runner.attempt))
        self._completer = Completer(self._in_flight, types)
        self._limits = types.limits
        self._request = ClaimRequest(dict.fromkeys(types, LEASE_SECONDS), 1, declared=types.limits)
        self._link = Link(url, "rowcall worker testing", outage)
        make_queues(self._link.get(), list(types.limits))
        register(
            self._link.get(),
            Registration(self._worker, socket.gethostname(), os.getpid(), __version__, None, list(types), 1),
        )

    def close(self) -> None:
        """End the handler thread and the connection."""
        self._executor.close()
        self._link.close()

    def perform_next(self) -> Attempted | None:
        """Attempt the run that a worker would take next; None when nothing is due."""
        with self._turn:
            sweep(self._link.get(), self._request)
            claimed = self._claim(self._request)
            return None if claimed is None else self._attempt(claimed)

    def perform(self, run_id: int) -> Attempted:
        """Attempt this run, or raise an error that says why a worker would not take it now."""
        with self._turn:
            return self._perform(run_id)

    def _perform(self, run_id: int) -> Attempted:
        connection = self._link.get()
        sweep(connection, self._request)
        try:
            row = get_run(connection, run_id)
        except RunNotFound:
            raise RowcallError(
                f"there is no run {run_id}: if the test has enqueued it, commit that transaction before perform()"
            ) from None
        lane = Lane(row["queue"], row["priority"], Position(row["run_at"], run_id))
        claimed = self._claim(replace(self._request, lanes=[lane]))
        if claimed is not None and claimed.run_id == run_id:
            return self._attempt(claimed)
        if claimed is not None:
            unclaim(connection, [self._in_flight_run(claimed).lease])
        raise RowcallError(self._refusal(run_id))

    def _claim(self, request: ClaimRequest) -> Claimed | None:
        connection = self._link.get()
        result = exchange(connection, self._worker, [], request)
        if result.claimed:
            return result.claimed[0]
        return claim_suspect(connection, self._worker, self._request, alone=True).claimed

    def _attempt(self, claimed: Claimed) -> Attempted:
        """Attempt the run in the handler thread, and write its end."""
        self._raised = None
        self._in_flight.accept(0, [self._in_flight_run(claimed)])
        while not (ended := self._in_flight.collect()):
            self._ended.wait()
            self._ended.clear()
        self._write(ended)
        raised, self._raised = self._raised, None
        if isinstance(raised, PYTESTS):
            raise raised
        return Attempted(claimed, raised)

    def _in_flight_run(self, claimed: Claimed) -> InFlightRun:
        return InFlightRun(self._worker, claimed, elapsed() + LEASE_SECONDS)

    def _write(self, ended: list[InFlightRun]) -> None:
        connection = self._link.get()
        succeeded = self._completer.write_apart(connection, ended)
        try:
            result = exchange(
                connection, self._worker, self._completer.successes(succeeded), replace(self._request, limit=0)
            )
        except REFUSALS:
            self._completer.write_one_by_one(connection, ended, succeeded)
        else:
            self._completer.written(succeeded, result.finished)

    def _watched(self, handler: Handler) -> Handler:
        """Wrap the handler to keep its exception, because an attempt's result contains only the text."""

        def watched(run: Any) -> object:
            try:
                return handler(run)
            except BaseException as error:
                self._raised = error
                raise

        return watched

    def _refusal(self, run_id: int) -> str:
        connection = self._link.get()
        row = get_run(connection, run_id)
        told = explain(connection, run_id, self._limits, heartbeat=LEASE_SECONDS)
        waits = any(one.name == "due" and not one.holds for one in told.conditions)
        advice = "; rowcall.advance() lets time pass" if waits else ""
        if told.status == Status.DEAD:
            advice = "; rowcall.retry() queues it again"
        why = f"{told.message}{advice}"
        return f"run {run_id} of {row['job_type']} {has_status(told.status)} and a worker would not claim it now: {why}"
