"""Who has the lease of a run, or had it, in words: a worker, or where the run was handed over."""

from __future__ import annotations

from rowcall.base.database import Row
from rowcall.queue.lease import CONSUMER, MESSAGE
from rowcall.status import Event


def is_unbegun(holder: str | None) -> bool:
    """Return whether a run was handed over, and no consumer has begun it."""
    return holder is not None and holder.startswith(MESSAGE)


def holder_words(holder: str) -> str:
    """Name the worker, the consumer, or the message that nobody has begun."""
    if is_unbegun(holder):
        queue, task = holder.removeprefix(MESSAGE).split(" ")
        return f"a message for the Celery task {task} in queue {queue}"
    return f"Celery on {holder.removeprefix(CONSUMER)}" if holder.startswith(CONSUMER) else holder


def counts(attempt: Row) -> bool:
    """Return whether an attempt counts: a snoozed one does not, nor does one that no consumer has begun."""
    return not (attempt["outcome"] == Event.SNOOZE or is_lost(attempt))


def is_lost(attempt: Row) -> bool:
    """Return whether an attempt ended because its message was lost, or waited for too long."""
    return attempt["outcome"] == Event.EXPIRE and is_unbegun(attempt["worker"])
