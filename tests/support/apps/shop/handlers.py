"""The shop's handlers."""

import os
import resource
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rowcall import Run
from rowcall.base.errors import Permanent, Retry, Snooze

from . import isolated as isolated
from . import steps as steps
from .business import book_order, lose_lease, ship_order
from .job_types import BOOK, CLOCK, ISOLATED_PACK, LIMITED, NARROW, NOTHING, PACK, SHIP, SLOW, WAIT
from .unspeakable import unspeakable

# The number of files to keep open, from before the worker connects.
FILES_OPEN = int(os.environ.get("SHOP_FILES_OPEN", "0"))
if FILES_OPEN:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2 * FILES_OPEN), most))
    for _ in range(FILES_OPEN):
        os.open(os.devnull, os.O_RDONLY)

FAR_FUTURE = datetime.now(UTC) + timedelta(days=300)


@PACK.handler
@ISOLATED_PACK.handler
def pack(run: Run) -> object:
    """End as the payload says."""
    ends = {
        "well": _well,
        "with a log": _with_a_log,
        "badly": _badly,
        "badly at first": _badly_at_first,
        "for good": _for_good,
        "later": _later,
        "not yet": _not_yet,
        "exit": _exit,
        "unstorable": _unstorable,
        "unspeakable": unspeakable,
        "never": _never,
        "shipped": _shipped,
        "with the worker": _with_the_worker,
        "with the worker, once returned": _with_the_worker_once_returned,
    }
    return ends[run.payload["ends"]](run)


def _well(run: Run) -> object:
    return {"packed": run.payload["order_id"], "attempt": run.attempt}


def _with_a_log(run: Run) -> object:
    """Log in the first attempt, and fail; log in the second, and succeed."""
    run.log.info("attempt %d of order %d", run.attempt, run.payload["order_id"])
    return _badly_at_first(run)


def _badly(run: Run) -> object:
    raise ValueError(f"order {run.payload['order_id']}: postgresql://me:hush@db/shop did not answer")


def _badly_at_first(run: Run) -> object:
    return _badly(run) if run.lease_no == 1 else _well(run)


def _for_good(run: Run) -> object:
    raise Permanent("no such order")


def _later(run: Run) -> object:
    raise Retry("the shelf is empty", after=3600)


def _not_yet(run: Run) -> object:
    raise Snooze(FAR_FUTURE)


def _exit(run: Run) -> object:
    sys.exit(3)


def _unstorable(run: Run) -> object:
    return {"a": "\0"}


def _never(run: Run) -> object:
    run.progress(0, "begun")
    time.sleep(3600)  # until the test interrupts it
    return None


def _shipped(run: Run) -> object:
    with run.transaction(result={"lease": run.lease_no}) as connection:
        ship_order(connection, run.payload["order_id"])
    return None


def _with_the_worker(run: Run) -> object:
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def _with_the_worker_once_returned(run: Run) -> object:
    return LastWords(said="nothing") if run.attempt == 1 else _well(run)


class LastWords(dict[str, str]):
    """A result that kills the worker when it is serialized, after its handler has returned."""

    def items(self) -> Any:
        """Kill the process."""
        os.kill(os.getpid(), signal.SIGKILL)


@CLOCK.handler
def clock(run: Run) -> object:
    """Return the time at which the handler was called."""
    return {"at": time.time()}


@NOTHING.handler
def nothing(run: Run) -> None:
    """Return at once, without a result: what a run costs without its work."""


@SLOW.handler
def slow(run: Run) -> object:
    """In the first attempt, work in small steps until the run must stop; in the second, return at once."""
    run.log.info("attempt %d", run.attempt)
    if run.attempt > 1:
        return {"attempt": run.attempt}
    for step in range(12_000):
        run.progress(step / 12_000, f"step {step}")
        run.check()
        time.sleep(0.05)  # the work
    return None


@LIMITED.handler
def limited(run: Run) -> object:
    """Exceed the type's time limit without checking it."""
    time.sleep(3600)  # until the time limit ends it
    return None


@BOOK.handler
def book(run: Run) -> object:
    """Write to the shop's table, and commit that with the success."""
    with run.transaction(result={"booked": run.payload["order_id"]}) as connection:
        book_order(connection, run.payload["order_id"])
        if run.payload["ends"] == "badly":
            raise ValueError("after the write")
        if run.payload["ends"] == "late":
            lose_lease(connection, run.id)
    return {"not": "this"}


@NARROW.handler
def narrow(run: Run) -> None:
    """Take a moment, so that a test sees it if too many run at a time."""
    time.sleep(0.02)  # the work


@WAIT.handler
def wait(run: Run) -> object:
    """Knock and wait at this lease's door without checking anything else; then end as the payload says."""
    Path(run.payload["doors"], f"{run.lease_no} knocked").touch()
    while not Path(run.payload["doors"], f"{run.lease_no} open").exists():
        time.sleep(0.01)  # before it looks at the door again
    return pack(run)


@SHIP.handler
def ship(run: Run) -> object:
    """Write to the shop's table, and commit that with the success; or kill the worker on the way."""
    _die(run, "in the handler")
    with run.transaction(result={"shipped": run.payload["order_id"]}) as connection:
        ship_order(connection, run.payload["order_id"])
        _die(run, "in its transaction")
    return None


def _die(run: Run, moment: str) -> None:
    if run.attempt == 1 and run.payload.get("dies") == moment:
        os.kill(os.getpid(), signal.SIGKILL)
