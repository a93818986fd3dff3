"""Say why a due nominal time stays unprocessed."""

from __future__ import annotations

from datetime import datetime, timedelta

from rowcall.base.database import Row
from rowcall.queue.workers import SILENCE_SECONDS

LATE = timedelta(seconds=SILENCE_SECONDS)


def overdue(row: Row, last: Row, now: datetime) -> str | None:
    """Return why this definition's nominal time is unprocessed; None if it is paused, or if the next tick is on time.

    `last` is the last tick, as `last_tick` returns it.  As long as no worker ticks, that alone is the cause.
    """
    due = row["next_run_at"]
    if due is None or due > now or row["paused_at"]:
        return None
    if last["worker"] is None:
        return "no worker has ever ticked"
    if now - last["ticked_at"] > LATE:
        return f"no worker has ticked since {last['ticked_at'].isoformat(sep=' ', timespec='seconds')}"
    if now - due > LATE:
        return (
            f"workers tick, and none has processed it: their ROWCALL_APP must have the job type {row['job_type']}; if"
            ' the definition is invalid, their logs say "schedule broken"'
        )
    return None
