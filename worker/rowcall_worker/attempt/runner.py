"""Call a handler, and make a result of whatever it does: in a worker's thread and in a child process alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import Permanent
from rowcall.base.jsonb import stored
from rowcall.base.settings import Settings
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.gateways import Gateways
from rowcall_worker.handlers import Handler
from rowcall_worker.runtime.in_flight import InFlightRun


@dataclass(frozen=True)
class Runner:
    """The handlers, and what a run needs while one of them works on it."""

    handlers: Mapping[str, Handler]
    resources: Resources

    @classmethod
    def of(cls, handlers: Mapping[str, Handler], url: str, settings: Settings) -> Runner:
        """A runner on this database, with the gateways of these settings."""

        def connect() -> PgConnection:
            return database.connect(url, "rowcall handler", database.HandlerConnection)

        def connect_internal() -> PgConnection:
            return database.connect_internal(url, "rowcall handler")

        gateways = Gateways(settings)
        return cls(handlers, Resources(connect, connect_internal, gateways, settings.payment_key_horizon))

    def attempt(self, run: InFlightRun) -> AttemptResult:
        """Call the handler; whatever it raises ends its attempt, and never the worker."""
        job_type = run.claimed.job_type
        context = Run(run, self.resources)
        try:
            # The run may have waited here for long, in a frozen process too: no lost or cancelled run is begun.
            context.check()
            value = self.handlers[job_type](context)
            if context.finished:
                return AttemptResult(finished=True)
            return AttemptResult(_text(job_type, value))
        except BaseException as error:
            # Also SystemExit: it ends the attempt, not the worker.
            return AttemptResult.of_error(error)


def _text(job_type: str, value: object) -> str | None:
    """The value as it is stored; what the database would refuse for a whole batch is refused here for one run."""
    try:
        return None if value is None else stored(value)
    except ValueError as error:
        raise Permanent(f"what the handler of {job_type} returned cannot be stored: {error}") from None
