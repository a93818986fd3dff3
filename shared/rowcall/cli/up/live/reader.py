"""Reads snapshots in a separate thread, so that the view never waits for the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType

from rowcall.base.database import connect_internal, drivers_error
from rowcall.base.errors.sentences import one_line
from rowcall.base.redaction import redacted
from rowcall.base.watched import InternalConnection
from rowcall.cli.up.live.snapshot import Snapshot, read_snapshot

# From the end of one read to the start of the next.
PAUSE_SECONDS = 1.0
# After this long without an answer, the view says that the database is away.
SILENCE_SECONDS = 5.0
# How long `up` waits for this thread at its end; a thread that hangs in a read ends with the process.
END_SECONDS = 1.0


class Reader:
    """The latest snapshot and, while the database is away, the reason.  It has one connection, and reopens it."""

    def __init__(self, url: str, queue: str | None, announced: Iterable[int], link: str = "") -> None:
        self.snapshot: Snapshot | None = None
        self._url = url
        self._queue = queue
        self._announced = tuple(announced)
        self._link = link
        self._error: str | None = None
        self._answered_at = time.monotonic()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join(END_SECONDS)

    @property
    def silent_for(self) -> float:
        """The seconds since the database last answered."""
        return time.monotonic() - self._answered_at

    @property
    def away(self) -> str | None:
        """Why nothing can be read now; None if reading is possible."""
        if self._error is None and self.silent_for > SILENCE_SECONDS:
            return "it does not answer"
        return self._error

    def _run(self) -> None:
        """Read until the end; after an error, open another connection."""
        connection: InternalConnection | None = None
        while not self._ends.is_set():
            try:
                if connection is None:
                    connection = connect_internal(self._url, "rowcall up")
                    # Each read is a separate transaction, and none stays open between two reads.
                    connection.autocommit = True
                self.snapshot = read_snapshot(connection, self._queue, self._announced, self._link)
                self._answered_at, self._error = time.monotonic(), None
            except Exception as error:  # the view shows any error, and the thread tries again
                self._error = redacted(one_line(str(drivers_error(error))))
                _close(connection)
                connection = None
            self._ends.wait(PAUSE_SECONDS)
        _close(connection)


def _close(connection: InternalConnection | None) -> None:
    if connection is not None:
        connection.close()
