"""Explain what a running run does: who has its lease, and what happens if that one is dead."""

from __future__ import annotations

from datetime import datetime

from rowcall.base.database import Connection, Row, fetch_one, fetch_value
from rowcall.queue.claims.holders import holder_words, is_unbegun
from rowcall.queue.views.live_workers import HOLDER, LIVE_WORKERS, SWEEPING
from rowcall.queue.workers import silence


def running(connection: Connection, row: Row, heartbeat: float) -> tuple[str, tuple[str, ...]]:
    """Return a sentence about a running run, and the commands that would change it."""
    if is_unbegun(row["locked_by"]) and not row["lease_is_over"]:
        return _message(row), (_cancel(row),)
    since = f" since {time_of(row['started_at'])}" if row["started_at"] else ""
    message = f"{_does(row['locked_by'])}{since}, attempt {row['attempts']}"
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
    return f"{message}; {beat}{asked}", (_cancel(row),)


def _cancel(row: Row) -> str:
    """Return the command that cancels the run: by force, if it was asked for before."""
    force = " --force" if row["cancel_requested_at"] else ""
    return f"rowcall runs cancel {row['id']}{force}"


def _does(holder: str) -> str:
    """Return where a run is performed; only an expired lease is still that of a message."""
    if is_unbegun(holder):
        return "handed over and not begun by a consumer"
    return f"running on {holder}"


def _message(row: Row) -> str:
    """Explain a run that was handed over and that no consumer has begun."""
    asked = row["cancel_requested_at"]
    since = f" at {time_of(row['started_at'])}" if row["started_at"] else ""
    then = f"cancelled, as was asked at {time_of(asked)}" if asked else "handed over again"
    return (
        f"handed over{since}: {holder_words(row['locked_by'])} waits for a consumer;"
        f" if none has begun the run by {time_of(row['locked_until'])}, it is {then};"
        " check that a Celery worker serves this queue and knows this task"
    )


def times(heartbeat: float) -> dict[str, float]:
    """Return how often a worker of older code sends a heartbeat, and after what silence it is gone, in seconds."""
    return {"heartbeat": heartbeat, "silence": silence(heartbeat)}


def time_of(moment: datetime) -> str:
    """Format a time for a sentence."""
    return moment.isoformat(sep=" ", timespec="seconds")
