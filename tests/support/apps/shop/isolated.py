"""What the shop's isolated runs do: what would end a worker, if it happened in one."""

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
    """Tell the test which process this is."""
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
    """Work in small steps for as long as it still counts."""
    while True:
        run.check()
        time.sleep(0.02)  # the work


def _hang(run: Run) -> object:
    """Only a first attempt hangs."""
    if run.attempt == 1:
        time.sleep(3600)  # what a test means to interrupt
    return None


def _leave_a_program(run: Run) -> object:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])  # what must not stay
    return {"left": left.pid}


def _noise(run: Run) -> object:
    """Many large answers on the way, and one at the end."""
    for step in range(2_000):
        run.progress(step / 2_000, "x" * 200)
    return {"noise": "x" * 60_000}


@ISOLATED_BOOK.handler
def book(run: Run) -> object:
    """Write to the shop's own table, and end with it."""
    with run.transaction(result={"booked": run.payload["order_id"]}) as connection:
        book_order(connection, run.payload["order_id"])
        if run.payload["ends"] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    return None


@ISOLATED_LIMITED.handler
def limited(run: Run) -> object:
    """Take longer than the type allows, and never look up."""
    where(run)
    return _hang(run)


@ISOLATED_SHORT.handler
def short(run: Run) -> object:
    """Outlast a lease."""
    where(run)
    return _hang(run)


@ISOLATED_CAPPED.handler
def capped(run: Run) -> object:
    """Hold as many MiB as the payload says."""
    return {"held": len(bytearray(run.payload["order_id"] * 2**20)) // 2**20}
