"""Call a handler and turn its outcome into a result, in a worker's thread or in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import psycopg2

from rowcall.base import tracing
from rowcall.base.errors import RowcallError
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall.queue.enqueue import PARENT
from rowcall.queue.lease import trace_parent
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.in_flight_run import NO_RESULT, InFlightRun
from rowcall_worker.attempt.result import AttemptResult, kept_text
from rowcall_worker.gateways import Gateways
from rowcall_worker.handlers import Handler

# What a process raises in a handler to end it; a handler may raise these too.
INTERRUPTIONS = (SystemExit, KeyboardInterrupt, GeneratorExit)


@dataclass(frozen=True)
class Runner:
    """The handlers, and what they share."""

    handlers: Mapping[str, Handler]
    resources: Resources

    @classmethod
    def of(cls, handlers: Mapping[str, Handler], connections: Connections, settings: Settings) -> Runner:
        """A runner with these connections, and with the gateways of these settings."""
        leases = {name: job_type.lease or settings.lease for name, job_type in catalogue().items()}
        return cls(handlers, Resources(connections, Gateways(settings), settings.payment_key_horizon, leases))

    def attempt(self, run: InFlightRun) -> AttemptResult:
        """Call the handler; an exception ends the attempt and never the worker."""
        self.resources.connections.keep_for_this_thread()
        if not tracing.loaded():
            return self._attempt(run)
        claimed = run.claimed
        attributes = {
            "messaging.system": "rowcall",
            "messaging.operation.type": "process",
            "messaging.message.id": str(claimed.run_id),
            "rowcall.job_type": claimed.job_type,
            "rowcall.attempt": claimed.attempt,
            "rowcall.lease_no": claimed.lease_no,
        }
        parent = self._trace_parent(claimed.run_id)
        with tracing.span(f"attempt {claimed.job_type}", "CONSUMER", parent, attributes) as span:
            result = self._attempt(run)
            if result.error is not None:
                span.failed(result.error.failure.error_type, result.error.failure.error)
        return result

    def _trace_parent(self, run_id: int) -> str | None:
        """Return the run's traceparent, which a claim does not read; without the database, the trace begins here."""
        with suppress(psycopg2.Error, RowcallError), self.resources.connections.internal_transaction() as connection:
            return tracing.parsed(trace_parent(connection, run_id))
        return None

    def _attempt(self, run: InFlightRun) -> AttemptResult:
        job_type = run.claimed.job_type
        context = Run(run, self.resources)
        enqueues = PARENT.set(context.id)
        try:
            # The run may have waited here for a long time, for example in a frozen process: do not begin a lost or
            # cancelled run.
            context.check()
            value = self.handlers[job_type](context)
            if context.finished:
                return AttemptResult(finished=True)
            # Check the value here, because the database would refuse the whole batch of results with it.
            if value is None:
                return NO_RESULT
            return AttemptResult(kept_text(value, f"the handler of {job_type} returned"))
        except BaseException as error:
            # Also SystemExit: it ends the attempt, not the worker.  A consumer raises it again.
            if isinstance(error, INTERRUPTIONS):
                run.interrupted = error
            return _broke_late(context, error) if context.finished else AttemptResult.of_error(error)
        finally:
            PARENT.reset(enqueues)


def _broke_late(context: Run, error: BaseException) -> AttemptResult:
    """Log an error raised after the handler's own transaction has written the success."""
    log().with_fields(run_id=context.id, lease_no=context.lease_no).error(LogEvent.HANDLER_FAILED_LATE, exc_info=error)
    return AttemptResult(finished=True)
