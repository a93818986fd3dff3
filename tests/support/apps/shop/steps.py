"""Handlers that work in steps, each a transaction of its own."""

import time

from rowcall.base.database import fetch_value
from rowcall_worker.attempt.context import Run
from rowcall_worker.handlers import handles

LOCKED_UNTIL = "SELECT extract(epoch FROM locked_until)::float8 FROM rowcall.job_runs WHERE id = %(id)s"


@handles("shop_steps")
def steps(run: Run) -> object:
    """Tell by how much a step moves the lease's end, in the database and in the process."""
    deadline = run._in_flight.deadline
    with run.step() as connection:
        before = fetch_value(connection, LOCKED_UNTIL, {"id": run.id})
        time.sleep(0.1)  # the work
    with run.step() as connection:
        after = fetch_value(connection, LOCKED_UNTIL, {"id": run.id})
    return {"renewed": after - before, "deadline moved": run._in_flight.deadline > deadline}
