"""Call a handler, and make an outcome of whatever it does: in a worker's thread and in a child process alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import Permanent
from rowcall.base.jsonb import stored
from rowcall.base.settings import Settings
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.result import error_of
from rowcall_worker.gateways import Gateways
from rowcall_worker.handlers import Handler
from rowcall_worker.runtime.in_flight import InFlightRun, Outcome


@dataclass(frozen=True)
class Runner:
    """The handlers, and what a run needs while one of them works on it."""

    handlers: Mapping[str, Handler]
    means: Resources

    @classmethod
    def of(cls, handlers: Mapping[str, Handler], worker: str, url: str, settings: Settings) -> Runner:
        """For this worker's runs, on this database, with the gateways of these settings."""

        def connect() -> PgConnection:
            return database.connect(url, "rowcall handler")

        def connect_internal() -> PgConnection:
            return database.connect_internal(url, "rowcall handler")

        gateways = Gateways(settings)
        return cls(handlers, Resources(worker, connect, connect_internal, gateways, settings.payment_key_horizon))

    def attempt(self, run: InFlightRun) -> Outcome:
        """Call the handler; whatever it raises is its outcome, and none of ours."""
        given = Run(run, self.means)
        try:
            # It may have waited here for long, in a frozen process too: what is lost or cancelled is not begun.
            given.check()
            result = self.handlers[run.claimed.job_type](given)
            if given.finished:
                return Outcome(run, finished=True)
            return Outcome(run, _text(run, result))
        except BaseException as error:
            # Also SystemExit: it ends the attempt, not the worker.
            return Outcome(run, verdict=error_of(error))


def _text(run: InFlightRun, result: object) -> str | None:
    """The result as it is stored; what the database would refuse for the whole batch is refused here for this run."""
    try:
        return None if result is None else stored(result)
    except ValueError as error:
        raise Permanent(f"what the handler of {run.claimed.job_type} returned cannot be stored: {error}") from None
