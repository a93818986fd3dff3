"""The client of a consumer, such as a Celery worker: begin and finish runs that were handed over to it."""

from __future__ import annotations

import os
import threading

from rowcall_worker.handover.consumer import Consumer

__all__ = ["run_handed_over"]

_LOCK = threading.Lock()
# By process, because Celery forks its workers.
_CONSUMERS: dict[int, Consumer] = {}


def run_handed_over(run_id: int, lease_no: int) -> bool:
    """Perform a run that was handed over; return whether this message began it.

    A Celery task calls this with the two arguments of its message.  It calls the handler of the run's job type
    and writes how the attempt ended, with the same rules as a worker: retries, snoozes, effects.  An error of the
    handler is written too, and not raised.  A message that comes too late or twice begins nothing.
    """
    with _LOCK:
        consumer = _CONSUMERS.get(os.getpid())
        if consumer is None or consumer.failed:
            _CONSUMERS.clear()
            consumer = _CONSUMERS[os.getpid()] = Consumer()
    return consumer.perform(run_id, lease_no)
