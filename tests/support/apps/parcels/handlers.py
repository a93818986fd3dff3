"""What happens to parcels, in a worker or in Celery: the handler cannot tell."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

from rowcall import Run, Snooze
from rowcall.effects import Effect

from .job_types import LIMITED, SEND, WEIGH


@LIMITED.handler
@SEND.handler
def send(run: Run) -> object:
    """Print the label once; then end as the payload says."""
    run.log.info("sending", order=run.payload["order_id"])
    run.progress(0.5, "sending")
    _wait_at_the_door(run)
    run.effect("label", key=f"{run.id}", content={}, perform=lambda effect: _print(run, effect))
    ends = run.payload["ends"]
    if ends == "badly at first" and run.attempt == 1:
        raise ValueError("the address is smudged")
    if ends == "later" and run.lease_no == 1:
        raise Snooze(datetime.now(UTC))
    if ends == "killed" and run.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while ends == "when cancelled":
        run.check()
        time.sleep(0.01)  # the work
    return {"sent": run.payload["order_id"]}


@WEIGH.handler
def weigh(run: Run) -> object:
    """Return who performed the run."""
    return {"pid": os.getpid()}


def _wait_at_the_door(run: Run) -> None:
    if not run.payload["doors"]:
        return
    Path(run.payload["doors"], f"{run.lease_no} knocked").touch()
    while not Path(run.payload["doors"], f"{run.lease_no} open").exists():
        time.sleep(0.01)  # before it looks at the door again


def _print(run: Run, effect: Effect) -> str:
    with Path(run.payload["folder"], "labels").open("a") as labels:
        labels.write(f"{run.id}\n")
    return f"label-{run.id}"
