"""Attempts at a run whose handler works on its app's tables."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import Row, fetch_all
from rowcall.base.settings import Settings
from rowcall.base.watched import Answers
from rowcall.queue import Claimed
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.gateways import Gateways
from tests.support.rows import WORKER, row_of, run_in


class Attempts:
    """Makes attempts at one run, one after another, in a handler thread that keeps its connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        with database.transaction(url) as connection:
            self.row: Row = run_in(connection, Status.RUNNING)
            fetch_all(
                connection,
                "CREATE TABLE public.orders (id serial PRIMARY KEY, name text UNIQUE, token uuid, packed bool)",
            )
        self.connections = Connections(url, Answers())
        self.connections.keep_for_this_thread()

    def __call__(self, handler: Callable[[Run], object]) -> AttemptResult:
        row = self.row
        claimed = Claimed(
            row["id"], row["lease_no"], "noop", {"order_id": 1}, row["attempts"], row["max_attempts"], None
        )
        resources = Resources(self.connections, Gateways(Settings()), 0.0, {"noop": 60.0})
        return Runner({"noop": handler}, resources).attempt(InFlightRun(WORKER, claimed, elapsed() + 60))

    def failed_by(self, handler: Callable[[Run], object]) -> tuple[str, str, bool]:
        """Return the error's type, its text, and whether it is permanent."""
        error = self(handler).error
        assert error is not None
        return error.failure.error_type, error.failure.error, error.failure.permanent

    @property
    def state(self) -> tuple[str, list[str]]:
        """Return the run's status, and the names of the orders."""
        with database.transaction(self.url) as connection:
            names = fetch_all(connection, "SELECT name FROM public.orders ORDER BY id")
            return row_of(connection, self.row["id"])["status"], [order["name"] for order in names]
