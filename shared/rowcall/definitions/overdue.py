"""Nominal times that have come and are undecided: why, in words."""

from __future__ import annotations

from datetime import datetime, timedelta

from rowcall.base.database import Row
from rowcall.queue.workers import SILENCE_SECONDS


def undecided_because(row: Row, last: Row, now: datetime) -> str | None:
    """Return why this definition's nominal time is undecided although it has come, or None if it has not come.

    `last` is the last tick, as `last_tick` returns it.
    """
    due = row["next_run_at"]
    if due is None or due > now:
        return None
    if last["worker"] is None:
        return "no worker has ever ticked"
    if last["ticked_at"] < due:
        return f"no worker has ticked since {last['ticked_at'].isoformat(sep=' ', timespec='seconds')}"
    return (
        f"workers tick, and none has decided it: their ROWCALL_APP must have the job type {row['job_type']}; if the"
        ' definition is invalid, their logs say "schedule broken"'
    )


def overdue(row: Row, last: Row, now: datetime) -> str | None:
    """Return why its runs are not enqueued; None if it is paused, or if the next tick may still be on time."""
    because = undecided_because(row, last, now)
    punctual = last["worker"] is not None and now - (row["next_run_at"] or now) < timedelta(seconds=SILENCE_SECONDS)
    return None if because is None or punctual or row["paused_at"] else f"overdue: {because}"
