"""What the programs of the Python systems share.  They run in other environments, so it needs only Python itself.

All moments are nanoseconds of the machine's monotonic clock, which Node.js's hrtime shows too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["BENCH_FOLDER"])
DATABASE_URL = os.environ["DATABASE_URL"]


def asked() -> tuple[str, dict[str, Any]]:
    """Return the command and its options."""
    return sys.argv[1], json.loads(sys.argv[2])


def write(name: str, content: object) -> None:
    """Write a file that the driver waits for; it is complete when it has its name."""
    draft = FOLDER / f"{name}.{os.getpid()}.draft"
    draft.write_text(json.dumps(content))
    draft.rename(FOLDER / f"{name}.{os.getpid()}")


def chunks(count: int, size: int) -> Iterator[range]:
    """Divide the numbers below `count` into ranges of this size."""
    for first in range(0, count, size):
        yield range(first, min(first + size, count))


def keys_of(chunk: range) -> list[str]:
    """Return a key for each job."""
    return [f"order-{number}" for number in chunk]


def timed(count: int, enqueue: Callable[[], None]) -> None:
    """Write how many jobs were enqueued in a second."""
    began = time.monotonic_ns()
    enqueue()
    write("rate", count / (time.monotonic_ns() - began) * 1e9)


def paced(options: dict[str, Any], enqueue: Callable[[int], object]) -> None:
    """Enqueue a job now and then, and write when each was committed."""
    committed = []
    for number in range(options["count"]):
        time.sleep(options["pause"])
        enqueue(number)
        committed.append((number, time.monotonic_ns()))
    write("committed", committed)


class Handled:
    """What the handler that does nothing reports: its first call, and, if asked, the moment of each call."""

    def __init__(self, record: int) -> None:
        self._record, self._first, self._calls = record, True, list[tuple[int, int]]()

    def call(self, number: int) -> None:
        """Report one call."""
        if self._first:
            self._first = False
            write("first", time.monotonic_ns())
        if self._record:
            self._calls.append((number, time.monotonic_ns()))
            if len(self._calls) == self._record:
                write("calls", self._calls)
