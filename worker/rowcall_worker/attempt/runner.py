"""Call a handler and turn its outcome into a result, in a worker's thread or in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall.queue.enqueue import PARENT
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Resources, Run
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult, kept_text
from rowcall_worker.gateways import Gateways
from rowcall_worker.handlers import Handler


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
        job_type = run.claimed.job_type
        context = Run(run, self.resources)
        self.resources.connections.keep_for_this_thread()
        enqueues = PARENT.set(f"run {context.id}")
        try:
            # The run may have waited here for long, for example in a frozen process: do not begin a lost or cancelled
            # run.
            context.check()
            value = self.handlers[job_type](context)
            if context.finished:
                return AttemptResult(finished=True)
            # Refuse for one run what the database would refuse together with a whole batch.
            text = None if value is None else kept_text(value, f"the handler of {job_type} returned")
            return AttemptResult(text)
        except BaseException as error:
            # Also SystemExit: it ends the attempt, not the worker.
            return _broke_late(context, error) if context.finished else AttemptResult.of_error(error)
        finally:
            PARENT.reset(enqueues)


def _broke_late(context: Run, error: BaseException) -> AttemptResult:
    """Log an error raised after the handler's own transaction has written the success."""
    log().with_fields(run_id=context.id, lease_no=context.lease_no).error(LogEvent.HANDLER_FAILED_LATE, exc_info=error)
    return AttemptResult(finished=True)
