"""The outcome of enqueuing a run, and the run's result, for a caller that waits for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rowcall.base.clock import elapsed
from rowcall.base.database import Connection, Row, fetch_one
from rowcall.base.database.alone import ended, outside_transaction
from rowcall.base.errors import NoResult, ResultTimeout
from rowcall.status import FINAL, Status

# The run's columns that say how it ended.  Operators are qualified, because a caller has its own search_path.
RESULT = """
SELECT status, result, error_type, last_error, pruned_at FROM rowcall.job_runs
WHERE id OPERATOR(pg_catalog.=) %(run_id)s
"""

# The same of an archived run, by the primary key of each month.
ARCHIVED_RESULT = """
SELECT status, result, error_type, last_error, pruned_at FROM rowcall.archived_runs
WHERE id OPERATOR(pg_catalog.=) %(run_id)s
"""

# Between two reads: short at first, because many runs take milliseconds, and doubled each time up to the longest.
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5

# The longest time that a caller may wait for.
LONGEST_SECONDS = 1_000_000


UNSEEN = "cannot be seen on this connection: commit the transaction that enqueued it first, unless it has been deleted"


@dataclass(frozen=True)
class Enqueued:
    """The run of a request; `replayed` means that an earlier request enqueued it."""

    run_id: int
    replayed: bool

    def result(self, connection: Connection, *, timeout: float) -> Any:
        """Wait up to `timeout` seconds for the run to succeed, and return its result.

        The connection must not be in a transaction, which would hide the run from the workers, or its end from the
        caller.  No transaction stays open between two reads.  Raises NoResult if the run is dead or cancelled, or its
        result was pruned or erased, and ResultTimeout if the time is up.
        """
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout <= LONGEST_SECONDS:
            raise ValueError(
                f"timeout is {timeout!r:.50} and must be a number of seconds from 0 to {LONGEST_SECONDS:,}"
            )
        until, pause = elapsed() + timeout, FIRST_PAUSE_SECONDS
        with outside_transaction(connection) as outside:
            while True:
                with ended(outside):
                    run = self._read(outside)
                if run is None:
                    raise NoResult(self.run_id, None, f"run {self.run_id} {UNSEEN}")
                if run["status"] in FINAL:
                    return self._result_of(run)
                left = until - elapsed()
                if not left > 0:
                    raise ResultTimeout(self.run_id, run["status"], timeout)
                time.sleep(min(pause, left))  # the run is read again at intervals
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _read(self, connection: Connection) -> Row | None:
        run = fetch_one(connection, RESULT, {"run_id": self.run_id})
        if run is None or run["pruned_at"] is not None:
            run = fetch_one(connection, ARCHIVED_RESULT, {"run_id": self.run_id}) or run
        return run

    def _result_of(self, run: Row) -> Any:
        name = f"run {self.run_id}"
        if run["status"] == Status.CANCELLED:
            raise NoResult(self.run_id, run["status"], f"{name} was cancelled")
        if run["status"] == Status.DEAD:
            why = ": ".join(filter(None, (run["error_type"], run["last_error"])))
            sentence = f"{name} is dead: {why or 'its error was pruned or erased'}"
            raise NoResult(self.run_id, run["status"], f"{sentence}; `rowcall runs show {self.run_id}` shows the run")
        if run["pruned_at"] is not None:
            raise NoResult(self.run_id, run["status"], f"{name} succeeded, but its result was pruned or erased")
        return run["result"]
