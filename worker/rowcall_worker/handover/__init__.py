"""The client of a consumer, such as a Celery worker: begin and finish runs that were handed over to it."""

from __future__ import annotations

import os
import sys
import threading

import psycopg2

from rowcall.base.errors import RowcallError
from rowcall_worker.handover.consumer import Consumer
from rowcall_worker.handover.declared import check_database, declared

__all__ = ["check_consumer", "run_handed_over"]

_LOCK = threading.Lock()
# By process, because Celery forks its workers.
_CONSUMERS: dict[int, Consumer] = {}


def check_consumer(**_: object) -> None:
    """End this process, with a sentence on standard error, if it could not perform runs.

    Connect this to Celery's signal `worker_init`, so that a worker with wrong settings takes no message.  It opens a
    connection and closes it again, because Celery forks its processes after that.  An unreachable database is no
    reason to end: messages wait until it is back.
    """
    try:
        check_database(declared().settings)
    except (RowcallError, psycopg2.Error) as error:
        sys.stderr.write(f"rowcall: this worker cannot perform runs: {error}\n")
        # Celery catches every Exception of a signal's receiver, and would start.
        raise SystemExit(error.exit_code if isinstance(error, RowcallError) else 1) from None


def run_handed_over(run_id: int, lease_no: int) -> bool:
    """Perform a run that was handed over; return whether this message began it.

    A Celery task calls this with the two arguments of its message.  It calls the handler of the run's job type
    and writes how the attempt ended, with the same rules as a worker: retries, snoozes, effects.  An error of the
    handler is written too, and not raised.  A message that comes too late or twice begins nothing.  A run whose type
    this app does not hand over goes back to its queue.  If the process is stopped meanwhile, the run is released.
    """
    with _LOCK:
        consumer = _CONSUMERS.get(os.getpid())
        if consumer is None or consumer.failed:
            _CONSUMERS.clear()
            consumer = _CONSUMERS[os.getpid()] = Consumer()
    return consumer.perform(run_id, lease_no)
