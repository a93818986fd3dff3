"""Handlers that work in steps, each in its own transaction."""

import multiprocessing
import os
import sys
import time

from rowcall import Run
from rowcall.base.database import fetch_value

from .business import book_order
from .job_types import FORKS, ISOLATED_FORKS, STEPS

LOCKED_UNTIL = "SELECT extract(epoch FROM locked_until)::float8 FROM rowcall.job_runs WHERE id = %(id)s"


@STEPS.handler
def steps(run: Run) -> object:
    """Return by how much a step extends the lease in the database, and whether it does in the process."""
    deadline = run._in_flight.deadline
    with run.step() as connection:
        before = fetch_value(connection, LOCKED_UNTIL, {"id": run.id})
        time.sleep(0.1)  # the work
    with run.step() as connection:
        after = fetch_value(connection, LOCKED_UNTIL, {"id": run.id})
    return {"renewed": after - before, "deadline moved": run._in_flight.deadline > deadline}


@FORKS.handler
@ISOLATED_FORKS.handler
def forks(run: Run) -> object:
    """Fork, and write something in the parent and in the child."""
    with run.step() as connection:
        kept = connection.info.backend_pid
    if run.payload["ends"] == "is multiprocessing's":
        child = multiprocessing.get_context("fork").Process(target=_book, args=(run, 2))
        child.start()
        child.join()
    elif (pid := os.fork()) == 0:
        _book(run, 2)
        return _end_of_child(run.payload["ends"])
    else:
        os.waitpid(pid, 0)
    return {"parent": True, "kept": _book(run, 1) == kept}


def _book(run: Run, order_id: int) -> int:
    with run.step() as connection:
        book_order(connection, order_id)
        return connection.info.backend_pid


def _end_of_child(ends: str) -> object:
    if ends == "raises":
        raise ValueError("the child broke")
    if ends == "exits":
        sys.exit(0)
    return {"parent": False}
