"""call_ping_url: tell an external service that Rowcall works, or that a run has begun or ended."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.alerts import pings
from rowcall.base.errors import GatewayError, Retry
from rowcall.base.logs import LogEvent, log
from rowcall.job_types.alerting import CALL_PING_URL, PingEvent
from rowcall_worker.attempt.context import Run

# How soon another worker may claim a ping that this one cannot send.
OTHERS_SECONDS = 2.0

NOT_WELL = "not called: in the last minutes no ping has finished, no worker has ticked, or the alerts were not checked"


@CALL_PING_URL.handler
def call_ping_url(run: Run) -> None:
    """Call the service; nothing is recorded in the ledger, because repeating a ping does no harm."""
    event = PingEvent(run.payload["event"])
    if event is PingEvent.ALIVE:
        _alive(run)
    else:
        _of_run(run, event)


def _of_run(run: Run, event: PingEvent) -> None:
    """Tell the service at a definition's `ping_url` that a run has begun or ended."""
    definition_id, run_id = run.payload["definition_id"], run.payload["run_id"]
    with run.step() as connection:
        url = pings.ping_url(connection, definition_id)
    answer = "the definition no longer has a ping_url"
    if url is not None:
        answer = _called(run, lambda: run.gateways.pings.of_run(url, event, run_id))
    with run.transaction({"answer": answer}) as connection:
        pings.finished(connection, run.id, definition_id)


def _alive(run: Run) -> None:
    """Call the switch if an earlier ping has finished recently; then finish, so that the next one may call it.

    So the pings stop if runs can begin but not finish.
    """
    own = run.gateways.pings.own
    if own is None and run.attempt < run.max_attempts:
        raise Retry("ROWCALL_PING_URL is not set for this worker: another may have it", after=OTHERS_SECONDS)
    with run.step() as connection:
        well = pings.is_well(connection, run.gateways.pings.checking)
    if own is None:
        answer = "ROWCALL_PING_URL is not set for this worker"
    elif well:
        answer = _called(run, lambda: run.gateways.pings.alive(own))
    else:
        answer = NOT_WELL
    with run.transaction({"answer": answer}) as connection:
        pings.finished(connection, run.id)


def _called(run: Run, call: Callable[[], str]) -> str:
    """Call the service; the last attempt raises no error, because the service notices a missing ping."""
    try:
        return call()
    except GatewayError as error:
        if run.attempt < run.max_attempts and not error.permanent:
            raise
        log().warning(LogEvent.PING_FAILED, error=str(error), ping=run.payload["event"])
        return f"failed: {error}"
