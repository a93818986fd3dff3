"""The worker: `run` keeps working, `once` does what is due and exits."""

from __future__ import annotations

import os
import secrets
import socket
import threading

from rowcall import __version__
from rowcall.base.clock import elapsed
from rowcall.base.errors import SchemaMismatch
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.base.watched import ANSWER_SECONDS
from rowcall.job_types import catalogue
from rowcall.queue import ClaimRequest
from rowcall.queue.workers import Registration, stopped
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.handlers import load_handlers
from rowcall_worker.isolation.isolation import Isolation
from rowcall_worker.runtime.claims.lanes import Lanes
from rowcall_worker.runtime.claims.sleep import Sleep
from rowcall_worker.runtime.claims.stranded import Steps, Stranded
from rowcall_worker.runtime.claims.suspects import Suspects
from rowcall_worker.runtime.claims.sweeper import INTERVAL_SECONDS
from rowcall_worker.runtime.completer import RELEASE_SECONDS, Completer, log_abandoned
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link, Outage
from rowcall_worker.runtime.executor import Executor
from rowcall_worker.runtime.handover.let_go import HANDED_OVER
from rowcall_worker.runtime.handover.publisher import publisher_for
from rowcall_worker.runtime.heartbeat import Heartbeat, notified
from rowcall_worker.runtime.in_flight import InFlight
from rowcall_worker.runtime.notifier import Notifier
from rowcall_worker.runtime.producer import Producer
from rowcall_worker.runtime.registration import finds_idle, register_worker
from rowcall_worker.runtime.scheduler import Scheduler
from rowcall_worker.runtime.signals import StopSignal
from rowcall_worker.runtime.task import Report, Task
from rowcall_worker.runtime.watchdog import Watchdog

# The least time that a busy server has to answer a heartbeat, however short the leases are.
LEAST_ANSWER_SECONDS = 2.0

# How often a stopping worker checks whether its handlers have ended.
DRAIN_STEP_SECONDS = 0.05

# How long a stopping worker waits for the result of a claim or a tick in progress.
CLAIM_SECONDS = 2.0

NOTHING_DUE = "nothing that it serves is due"
RELEASED = "the worker was stopped before the run was finished"


class Worker:
    """A worker process: its threads, in the order in which they start and stop."""

    def __init__(self, settings: Settings, url: str, task: Task, patience: float = ANSWER_SECONDS) -> None:
        """Create the parts of the worker; `patience` is how many seconds a thread waits for a statement's result."""
        self._patience = patience
        self._settings = settings
        self._url = url
        self._task = task
        types = catalogue()
        served = task.served(types)
        handlers = load_handlers(types, settings.app)
        leases = {name: job_type.claimed_seconds(settings.lease) for name, job_type in served.items()}
        publisher = publisher_for(served, leases, settings)
        self.id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self.outage = Outage()
        # Whether `once` found nothing due at its first look, so that it started no threads.
        self.found_idle = False
        self.in_flight = InFlight(task.concurrency, task.limit, deciding=task.once)
        self._isolation = Isolation(served, url)
        runner = Runner.of(handlers, Connections(url, self.outage.answers, patience), settings)
        attempts = {name: (self._isolation if known.isolated else runner).attempt for name, known in served.items()}
        if publisher is not None:
            attempts |= dict.fromkeys(publisher.handovers, publisher.attempt)
            self.in_flight.counter.handed_over = publisher.handovers
        self._executor = Executor(self.in_flight, attempts)
        # The thread that waits for a child enforces the limit of an isolated type, and a consumer that of its runs.
        limits = {
            name: known.time_limit
            for name, known in served.items()
            if known.time_limit and not known.isolated and known.handover is None
        }
        self._watchdog = Watchdog(self.in_flight, self._executor, limits, self.outage.answers)
        # The shortest lease must survive two failed heartbeats.
        self._interval = interval = min([settings.heartbeat, *(lease / 3 for lease in leases.values())])
        self._completer = Completer(self.in_flight, types)
        self._request = ClaimRequest(leases, 0, task.queues, types.limits)
        # A lost connection must be noticed and replaced before the shortest lease expires.
        heartbeat_link = self._link("heartbeat", min(patience, max(min(leases.values()) / 3, LEAST_ANSWER_SECONDS)))
        renewed = {name: lease for name, lease in leases.items() if served[name].handover is None}
        self._heartbeat = Heartbeat(self.in_flight, heartbeat_link, self._registered(), renewed, interval)
        lanes, self._stranded = Lanes(), Stranded(self.in_flight, Steps())
        suspects = Suspects(self.in_flight, min(settings.poll, INTERVAL_SECONDS))
        self._notifier = notifier = Notifier(self._link("notifier"), self.in_flight.wake_ups.hear, patience)
        sleep = Sleep(self.id, notified(interval), lambda: notifier.listens)
        self._producers = [
            Producer(
                self.in_flight,
                self._completer,
                self._link("producer"),
                self.id,
                self._request,
                lanes,
                settings.poll,
                leads,
                task.once,
                self._stranded,
                suspects,
                sleep if leads and not task.once else None,
                publisher,
            )
            for leads in (True, False)
        ]
        self._threads: list[threading.Thread] = []
        self._scheduler = Scheduler.of(self._link("scheduler"), self.id, types, settings)

    def _link(self, purpose: str, patience: float | None = None, tolerant: bool = False) -> Link:
        return Link(self._url, f"rowcall worker {purpose}", self.outage, patience or self._patience, tolerant)

    def work(self) -> Report:
        """Work until asked to stop; with `once`, until nothing is due or a limit is reached."""
        task, started = self._task, elapsed()
        # Before it registers: otherwise a signal could kill a registered worker, which would count as alive until its
        # heartbeat is late.
        stop = StopSignal(self.in_flight.quiet.set, lambda: log_abandoned(self.id, list(self.in_flight.runs.values())))
        self._watchdog.start()
        self._register(stop)
        log().info(LogEvent.WORKER_STARTED, worker=self.id, concurrency=task.concurrency, queues=task.queues or "all")
        until = started + task.max_time if task.once else float("inf")
        reason = (stop.name or NOTHING_DUE) if self.found_idle else self._work(stop, until)
        report = self._report(elapsed() - started, reason)
        self._watchdog.stop()
        if self.in_flight.failure is not None:
            raise self.in_flight.failure
        return report

    def _work(self, stop: StopSignal, until: float) -> str:
        """Start the threads, wait, and stop them; return why the worker stops."""
        self._start(until)
        while not stop.asked and elapsed() < until and self.in_flight.failure is None:
            # Signals are handled between waits, so no wait may last forever.
            quiet = self.in_flight.quiet.wait(min(self._settings.poll, max(0.0, until - elapsed())))
            if quiet:  # otherwise a look may have set it since
                self.in_flight.quiet.clear()
            if self._task.once and not self.in_flight.deciding and (quiet or self._limit_reached()):
                break
        reason = self._reason(stop, until)
        if self._task.once:
            self._finish(stop)
        self._drain()
        for thread in self._threads:
            thread.join(DRAIN_STEP_SECONDS)
        self._scheduler.join(CLAIM_SECONDS)
        self._heartbeat.stop(self._patience)
        self._record_stop()
        return reason

    def _start(self, until: float) -> None:
        self._heartbeat.start()
        if self._task.once:
            self._scheduler.start_once(self.in_flight.guarded, until, self.in_flight.look_again)
        else:
            self._scheduler.start(self.in_flight.guarded)
            self._notifier.start(self.in_flight.guarded)
            self._isolation.start()
        self._threads = [producer.start() for producer in self._producers]

    def _register(self, stop: StopSignal) -> None:
        """Register the worker, unless `once` finds at its first look that nothing is due."""
        link, worker, limited_queues = self._link("start"), self._registered(), list(self._request.declared)
        if self._task.once and not self._scheduler.has_checks:
            self.found_idle = finds_idle(link, worker, limited_queues)
        if not self.found_idle:
            register_worker(link, worker, limited_queues, self._task.once, stop, self.in_flight.quiet)
            self._write_counts(link)
        link.close()

    def _write_counts(self, link: Link) -> None:
        """Write the counts that the heartbeat has not written yet; counting begins with the first call."""
        try:
            self.in_flight.counter.write(link.get(), self.id)
        except CONNECTION_ERRORS as error:
            link.lost(error)

    def _finish(self, stop: StopSignal) -> None:
        """Claim no more and let running handlers finish: the time limit of `once` limits only when runs may begin."""
        self.in_flight.close(begins=True)
        while not (stop.asked or self.in_flight.empty or self.in_flight.failure is not None):
            self.in_flight.quiet.wait(DRAIN_STEP_SECONDS)

    def _limit_reached(self) -> bool:
        limit = self._task.limit
        return limit is not None and self.in_flight.claimed >= limit and self.in_flight.empty

    def _drain(self) -> None:
        """Claim no more, let running handlers end within the grace, and give the other runs back to the queue."""
        in_flight, completer = self.in_flight, self._completer
        in_flight.close()
        if isinstance(in_flight.failure, SchemaMismatch):
            log().error(LogEvent.SCHEMA_CHANGED, worker=self.id, error=str(in_flight.failure))
        self._notifier.stop()
        self._scheduler.stop()
        grace = self._settings.grace
        if not in_flight.empty:
            log().info(LogEvent.WORKER_STOPPING, worker=self.id, running=len(in_flight.runs), grace=grace)
            link = self._link("drain", tolerant=True)
            until = elapsed() + grace
            completer.unclaim(link, in_flight.withdraw(), RELEASE_SECONDS)
            while self._unfinished and elapsed() < until:
                in_flight.quiet.wait(DRAIN_STEP_SECONDS)
                # A claim in progress may have added runs.
                completer.unclaim(link, in_flight.withdraw(), RELEASE_SECONDS)
            # It would claim what is about to be released.
            until = elapsed() + CLAIM_SECONDS
            while in_flight.reserved and elapsed() < until:
                in_flight.quiet.wait(DRAIN_STEP_SECONDS)
            completer.unclaim(link, in_flight.withdraw(), RELEASE_SECONDS)
            abandoned = in_flight.abandon()
            # End the children before their runs are released, so that no two attempts of a run overlap.
            self._isolation.close()
            completer.release(link, abandoned, RELEASED)
            # The producers still write results; if the database does not answer, give up after the patience.
            until = max(until, elapsed()) + self._patience
            while self._unfinished and elapsed() < until:
                in_flight.quiet.wait(DRAIN_STEP_SECONDS)
                # A claim that took even longer may have added runs.
                completer.unclaim(link, in_flight.withdraw(), RELEASE_SECONDS)
            completer.leave(list(in_flight.runs.values()), "its result could not be written")
            link.close()
        if self._stranded.looking and in_flight.failure is None:
            self._return_stranded()
        self._isolation.close()
        self._executor.close()
        in_flight.wake_ups.wake()

    @property
    def _unfinished(self) -> bool:
        """Whether a handler is running, or a producer that no error has ended can still write results or add runs."""
        in_flight = self.in_flight
        runs = not all(run.settled for run in list(in_flight.runs.values()))
        return not in_flight.empty and (runs or any(thread.is_alive() for thread in self._threads))

    def _return_stranded(self) -> None:
        """Unclaim the runs of lost claims; if the database is unreachable, their leases expire."""
        link = self._link("drain", tolerant=True)
        try:
            self._stranded.finish(link.get(), self.id)
        except CONNECTION_ERRORS as error:
            link.lost(error)
        link.close()

    def _reason(self, stop: StopSignal, until: float) -> str:
        """Say why the worker stops."""
        if self.in_flight.failure is not None:
            return type(self.in_flight.failure).__name__
        if stop.asked:
            return stop.name
        if elapsed() >= until:
            return "max-time reached"
        return "limit reached" if self._limit_reached() else NOTHING_DUE

    def _record_stop(self) -> None:
        """Record the last counts and the stop in the database."""
        link = self._link("report", tolerant=True)
        self._write_counts(link)
        try:
            stopped(link.get(), self.id)
        except CONNECTION_ERRORS as error:
            link.lost(error)
        link.close()

    def _report(self, seconds: float, reason: str) -> Report:
        """Say what the worker did, in the log too."""
        tally = self.in_flight.tally
        succeeded, failed, dead = (tally[end] for end in (Status.SUCCEEDED, Status.FAILED, Status.DEAD))
        report = Report(self.in_flight.claimed, succeeded, failed, dead, tally[HANDED_OVER], round(seconds, 3))
        log().info(LogEvent.WORKER_STOPPED, worker=self.id, reason=reason, **vars(report))
        return report

    def _registered(self) -> Registration:
        return Registration(
            self.id,
            socket.gethostname(),
            os.getpid(),
            __version__,
            None if self._task.queues is None else list(self._task.queues),
            list(self._request.leases),
            self._task.concurrency,
            self._interval,
        )
