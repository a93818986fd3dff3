"""Explain what a running run does: who has its lease, and what happens if that one is dead."""

from __future__ import annotations

from datetime import datetime

from rowcall.base.database import Connection, Row, fetch_one, fetch_value
from rowcall.queue.lease import CONSUMER, MESSAGE
from rowcall.queue.views.live_workers import HOLDER, LIVE_WORKERS, SWEEPING
from rowcall.queue.workers import silence


def running(connection: Connection, row: Row, heartbeat: float) -> tuple[str, tuple[str, ...]]:
    """Return a sentence about a running run, and the commands that would change it."""
    if row["locked_by"].startswith(MESSAGE) and not row["lease_is_over"]:
        return _message(row), (f"rowcall runs cancel {row['id']}",)
    since = f" since {time_of(row['started_at'])}" if row["started_at"] else ""
    message = f"running {_where(row['locked_by'])}{since}, attempt {row['attempts']}"
    if row["lease_is_over"]:
        message, queue = f"{message}; its lease expired at {time_of(row['locked_until'])}", row["queue"]
        if fetch_value(connection, SWEEPING, {**row, **times(heartbeat)}):
            end = f"a worker that serves queue {queue} ends the attempt within seconds, unless its row is locked"
            return f"{message}: {end}", ()
        others = fetch_value(connection, LIVE_WORKERS, times(heartbeat))
        return (
            f"{message}, and no live worker serves queue {queue}: the next one will end the attempt",
            ("rowcall worker run" + f" --queues {queue}" * bool(others),),
        )
    asked = f"; asked to stop at {time_of(row['cancel_requested_at'])}" if row["cancel_requested_at"] else ""
    until = time_of(row["locked_until"])
    holder = fetch_one(connection, HOLDER, {**row, **times(heartbeat)})
    if holder is None:
        beat = f"lease until {until}"
    else:
        last = time_of(holder["heartbeat_at"])
        beat = f"its worker's last heartbeat: {last}; if it is dead, another worker takes over at {until}"
        if holder["late"]:
            # The run recovers by itself.
            return f"{message}; {beat}{asked}", ()
    force = " --force" if row["cancel_requested_at"] else ""
    return f"{message}; {beat}{asked}", (f"rowcall runs cancel {row['id']}{force}",)


def _where(owner: str) -> str:
    """Return who performs a run; only an expired lease is still that of a message."""
    if owner.startswith(MESSAGE):
        return f"nowhere: {_named(owner)} was lost, or no consumer has begun the run"
    return f"in Celery on {owner.removeprefix(CONSUMER)}" if owner.startswith(CONSUMER) else f"on {owner}"


def _message(row: Row) -> str:
    """Explain a run that was handed over and that no consumer has begun."""
    asked = f"; asked to stop at {time_of(row['cancel_requested_at'])}" if row["cancel_requested_at"] else ""
    return (
        f"handed over at {time_of(row['started_at'])}: {_named(row['locked_by'])} waits until a consumer begins it;"
        f" if none has begun it by {time_of(row['locked_until'])}, the run is handed over again{asked}"
    )


def _named(owner: str) -> str:
    queue, task = owner.removeprefix(MESSAGE).split(" ")
    return f"its message for the Celery task {task} in queue {queue}"


def times(heartbeat: float) -> dict[str, float]:
    """Return how often a worker of older code sends a heartbeat, and after what silence it is gone, in seconds."""
    return {"heartbeat": heartbeat, "silence": silence(heartbeat)}


def time_of(moment: datetime) -> str:
    """Format a time for a sentence."""
    return moment.isoformat(sep=" ", timespec="seconds")
