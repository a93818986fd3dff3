"""Why an operation makes no progress, in a sentence, with the commands that would change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rowcall.base.database import Connection, Row
from rowcall.base.errors import RunNotFound
from rowcall.queue.operations.state import ACTIVE, OperationStatus
from rowcall.queue.views.explain import explain
from rowcall.queue.views.inspect import get_run
from rowcall.status import FINAL


class Waiting(NamedTuple):
    """A sentence, and commands."""

    message: str
    commands: tuple[str, ...]


def why_it_waits(
    connection: Connection, operation: Row, declared: Mapping[str, int], heartbeat: float
) -> Waiting | None:
    """Say what an operation is waiting for; None if it has finished.  The parameters are those of `explain`."""
    status = OperationStatus(operation["status"])
    on = f"rowcall operations continue {operation['id']}"
    if status is OperationStatus.WAITING:
        return Waiting(_canary(connection, operation), (f"rowcall runs show {operation['canary_run_id']}", on))
    if status is OperationStatus.STOPPED:
        return Waiting("an operator has stopped it", (on,))
    if status not in ACTIVE:
        return None
    try:
        explained = explain(connection, operation["run_id"], declared, heartbeat)
    except RunNotFound:
        return Waiting("the run that carried it out is gone", (f"rowcall operations stop {operation['id']}", on))
    run_id = operation["run_id"]
    if explained.status in FINAL:
        again = (f"rowcall operations stop {operation['id']}", on)
        ended = f"the run that carries it out, {run_id}, has ended: {explained.message}"
        return Waiting(ended, (*explained.commands, *again))
    return Waiting(f"run {run_id} carries it out: {explained.message}", explained.commands)


def _canary(connection: Connection, operation: Row) -> str:
    """Say what happened to the canary."""
    run_id = operation["canary_run_id"]
    if operation["refused"]:
        became = "was refused"
    else:
        try:
            became = f"was changed, and its status is now {get_run(connection, run_id)['status']}"
        except RunNotFound:
            became = "was changed"
    return f"its canary, run {run_id}, {became}; the operation is waiting for an operator"
