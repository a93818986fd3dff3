"""A worker's parts around one run, which a test calls one by one."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import Row, fetch_all
from rowcall.base.settings import Settings
from rowcall.base.watched import Answers
from rowcall.job_types import load_catalogue
from rowcall.queue import Claimed, get_run, log_end
from rowcall.queue.workers import Registration
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.gateways import Gateways
from rowcall_worker.runtime.completer import Completer
from rowcall_worker.runtime.connection import Link, Outage
from rowcall_worker.runtime.heartbeat import Heartbeat
from rowcall_worker.runtime.in_flight import InFlight
from tests.support.rows import WORKER, run_in

Handler = Callable[[Run], object]


class Desk:
    """A worker's parts around one run: its handler, its completer and its heartbeat, called by the test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.link = Link(url, "producer", Outage())
        self.in_flight = InFlight(1)
        self.completer = Completer(self.in_flight, load_catalogue(None))
        registration = Registration(WORKER, "host", 1, "0", None, ["noop"], 1)
        self.heart = Heartbeat(
            self.in_flight, Link(url, "heartbeat", Outage()), registration, {"noop": 60.0}, interval=1000.0
        )
        self.heart._next = float("inf")
        with database.transaction(url) as connection:
            row = run_in(connection, Status.RUNNING)
        claimed = Claimed(row["id"], row["lease_no"], "noop", {}, row["attempts"], row["max_attempts"], None)
        self.run = InFlightRun(WORKER, claimed, elapsed() + 60)
        self.in_flight.accept(0, [self.run])

    def attempt(self, handler: Handler) -> AttemptResult:
        """Call the handler, as a handler thread does, without writing its end."""
        resources = Resources(Connections(self.url, Answers()), Gateways(Settings()), 0.0, {"noop": 60.0})
        return Runner({"noop": handler}, resources).attempt(self.run)

    def end(self, result: AttemptResult | None = None) -> list[InFlightRun]:
        """Write the end of the attempt, as a producer does; return what is left for the exchange."""
        self.in_flight.settle(self.run, result or AttemptResult())
        return self.completer.write_apart(self.link.get(), self.in_flight.collect())

    def beat(self) -> None:
        """Let the next heartbeat be due, and beat."""
        self.heart._next = 0.0
        self.heart.tick()

    def sql(self, statement: str) -> list[Row]:
        with database.transaction(self.url) as connection:
            return fetch_all(connection, statement, {"run_id": self.run.lease.run_id})

    @property
    def status(self) -> str:
        with database.transaction(self.url) as connection:
            status: str = get_run(connection, self.run.lease.run_id)["status"]
        return status

    @property
    def log(self) -> list[tuple[str, str]]:
        """The level and the text of the lines that are kept."""
        with database.transaction(self.url) as connection:
            return [(line["level"], line["text"]) for line in log_end(connection, self.run.lease.run_id, 2000)]
