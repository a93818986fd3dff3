"""The shop's isolated handlers, which do what would end a worker if it ran them in its own process."""

import ctypes
import os
import signal
import subprocess
import sys
import time

from rowcall import Run

from .business import book_order
from .job_types import ISOLATED, ISOLATED_BOOK, ISOLATED_CAPPED, ISOLATED_LIMITED, ISOLATED_SHORT
from .unspeakable import unspeakable


def where(run: Run) -> None:
    """Report the id of this process to the test."""
    run.log.info("this is process %d", os.getpid())
    run.progress(0.5, str(os.getpid()))


@ISOLATED.handler
def isolated(run: Run) -> object:
    """End as the payload says."""
    where(run)
    ends = {
        "segfault": _segfault,
        "kill": _kill,
        "exit": _exit,
        "unstorable": _unstorable,
        "unspeakable": unspeakable,
        "work": _work,
        "hang": _hang,
        "leave a program": _leave_a_program,
        "noise": _noise,
        "loud": _loud,
    }
    return ends[run.payload["ends"]](run)


def _segfault(run: Run) -> object:
    return ctypes.string_at(0)


def _kill(run: Run) -> object:
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def _exit(run: Run) -> object:
    os._exit(3)


def _unstorable(run: Run) -> object:
    return {"a": "\0"}


def _work(run: Run) -> object:
    """Work in small steps until the run must stop."""
    while True:
        run.check()
        time.sleep(0.02)  # the work


def _hang(run: Run) -> object:
    """Hang in the first attempt only."""
    if run.attempt == 1:
        time.sleep(3600)  # until the test interrupts it
    return None


def _leave_a_program(run: Run) -> object:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])  # must not outlive the run
    return {"left": left.pid}


def _noise(run: Run) -> object:
    """Report large progress many times, and return a large result."""
    for step in range(2_000):
        run.progress(step / 2_000, "x" * 200)
    return {"noise": "x" * 60_000}


def _loud(run: Run) -> object:
    """Log much."""
    for step in range(2_000):
        run.log.info("step %d %s", step, "x" * 100)
    return None


@ISOLATED_BOOK.handler
def book(run: Run) -> object:
    """Write to the shop's table, and commit that with the success."""
    run.log.info("booking order %d", run.payload["order_id"])
    with run.transaction(result={"booked": run.payload["order_id"]}) as connection:
        book_order(connection, run.payload["order_id"])
        if run.payload["ends"] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    return None


@ISOLATED_LIMITED.handler
def limited(run: Run) -> object:
    """Exceed the type's time limit without checking it."""
    where(run)
    return _hang(run)


@ISOLATED_SHORT.handler
def short(run: Run) -> object:
    """Run longer than a lease."""
    where(run)
    return _hang(run)


@ISOLATED_CAPPED.handler
def capped(run: Run) -> object:
    """Allocate as many MiB as the payload says."""
    return {"held": len(bytearray(run.payload["order_id"] * 2**20)) // 2**20}
