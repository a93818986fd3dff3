"""How to cause each event of a run, and whether the database allowed it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import Connection, PgConnection, Row
from rowcall.base.errors import TransitionRefused
from rowcall.queue import ClaimRequest, Done, Failure, Lease
from rowcall.status import Event, Status
from tests.support.rows import WORKER

OPERATOR = Operator("a test")

FAILURE = Failure("it broke", "ValueError")

LATER = datetime(2030, 1, 1, tzinfo=UTC)

Act = Callable[[PgConnection, Row], object]


def lease_of(run: Row) -> Lease:
    return Lease(WORKER, run["id"], run["lease_no"])


def steered(event: Callable[[Connection, int, Operator], object]) -> Act:
    return lambda connection, run: event(connection, run["id"], OPERATOR)


def claim_one(connection: PgConnection, run: Row) -> object:
    return [
        claimed
        for claimed in queue.claim(connection, "worker-2", ClaimRequest({"noop": 60}, 10)).claimed
        if claimed.run_id == run["id"]
    ]


# How to cause each event; each function returns something false, or raises TransitionRefused, when it was refused.
ACTS: dict[Event, Act] = {
    Event.CLAIM: claim_one,
    Event.HEARTBEAT: lambda c, run: queue.heartbeat(c, {lease_of(run): 60}),
    Event.SUCCEED: lambda c, run: queue.succeed(c, [Done(lease_of(run), '{"done": 1}')]),
    Event.FAIL: lambda c, run: queue.fail(c, lease_of(run), FAILURE, delay=30),
    Event.GIVE_UP: lambda c, run: queue.give_up(c, lease_of(run), FAILURE),
    Event.RELEASE: lambda c, run: queue.release(c, lease_of(run), "stopping"),
    Event.UNCLAIM: lambda c, run: queue.unclaim(c, [lease_of(run)]),
    Event.SNOOZE: lambda c, run: queue.snooze(c, lease_of(run), LATER, "not yet"),
    Event.EXPIRE: lambda c, run: queue.expire(c, run["id"], run["lease_no"]),
    Event.CANCEL: steered(queue.cancel),
    Event.ASK_TO_CANCEL: steered(queue.ask_to_cancel),
    Event.CANCELLED: lambda c, run: queue.cancelled(c, lease_of(run)),
    Event.FORCE_CANCEL: lambda c, run: queue.force_cancel(c, run["id"], run["lease_no"], OPERATOR),
    Event.RUN_NOW: steered(queue.run_now),
    Event.RESCHEDULE: lambda c, run: queue.reschedule(c, run["id"], OPERATOR, LATER),
    Event.RETRY: steered(queue.retry),
}

# The columns that an event's guard needs besides the status.
READY: dict[Event, dict[str, str]] = {
    Event.EXPIRE: {"locked_until": "now() - interval '1 second'"},
    Event.CANCELLED: {"cancel_requested_at": "now()"},
}


def attempt(connection: PgConnection, event: Event, run: Row) -> bool:
    """Whether the event was allowed."""
    try:
        return bool(ACTS[event](connection, run))
    except TransitionRefused:
        return False


def ready(event: Event, status: Status) -> dict[str, str]:
    """Return those of the guard's columns that a row of this status may have."""
    columns = READY.get(event, {})
    return columns if status is Status.RUNNING else {name: v for name, v in columns.items() if name != "locked_until"}
