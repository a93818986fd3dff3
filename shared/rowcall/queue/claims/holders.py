"""Who has the lease of a run, or had it, in words: a worker, or where the run was handed over."""

from __future__ import annotations

from typing import NamedTuple

from rowcall.base.database import Row
from rowcall.queue.lease import CONSUMER, MESSAGE
from rowcall.status import Event


class Task(NamedTuple):
    """Where a message waits: the broker's queue, and the Celery task."""

    queue: str
    task: str


class Process(NamedTuple):
    """Where a consumer is."""

    hostname: str
    pid: int


def task_of(message: str) -> Task:
    """Return where this holder of a lease, which is a message, waits."""
    return Task(*message.removeprefix(MESSAGE).split(" "))


def process_of(consumer: str) -> Process:
    """Return where this holder of a lease, which is a consumer, is."""
    hostname, pid, _ = consumer.removeprefix(CONSUMER).rsplit(":", 2)
    return Process(hostname, int(pid))


def is_unbegun(holder: str | None) -> bool:
    """Return whether a run was handed over, and no consumer has begun it."""
    return holder is not None and holder.startswith(MESSAGE)


def holder_words(holder: str) -> str:
    """Name the worker, the consumer, or the message that nobody has begun."""
    return f"a message for {task_words(holder)}" if is_unbegun(holder) else holder


def task_words(message: str) -> str:
    """Name the Celery task that a message is for."""
    queue, task = task_of(message)
    return f"the Celery task {task} in queue {queue}"


def counts(attempt: Row) -> bool:
    """Return whether an attempt counts: a snoozed one does not, nor does one that no consumer has begun."""
    return not (attempt["outcome"] == Event.SNOOZE or is_lost(attempt))


def is_lost(attempt: Row) -> bool:
    """Return whether an attempt ended because its message was lost, or waited for too long."""
    return attempt["outcome"] == Event.EXPIRE and is_unbegun(attempt["worker"])
