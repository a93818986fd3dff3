"""The executor: threads take runs that wait, have them attempted, and settle the results.  No SQL happens here."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping

from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.in_flight import InFlight, InFlightRun

Attempt = Callable[[InFlightRun], AttemptResult]


class Executor:
    """The handler threads of a worker."""

    def __init__(self, in_flight: InFlight, attempts: Mapping[str, Attempt]) -> None:
        """`attempts` says how a run of each job type is attempted: in the thread itself or in a child process."""
        self._in_flight = in_flight
        self._attempts = attempts
        self._numbers = itertools.count()
        for _ in range(in_flight.threads):
            self.add_thread()

    def add_thread(self) -> None:
        """Start one more thread: at the beginning, and for each that is stuck in a handler beyond its time limit."""
        # Daemon threads: a handler that never returns must not keep the process from ending.
        threading.Thread(target=self._run, name=f"handler-{next(self._numbers)}", daemon=True).start()

    def close(self) -> None:
        """Let idle threads end."""
        for _ in range(self._in_flight.threads):
            self._in_flight.waiting.put(None)

    def _run(self) -> None:
        while (run := self._in_flight.waiting.get()) is not None:
            run.begun_at = elapsed()
            if not self._in_flight.settle(run, self._result(run)):
                return  # another thread has taken this one's place

    def _result(self, run: InFlightRun) -> AttemptResult:
        """Have the run attempted; whatever goes wrong ends this attempt, and never the thread."""
        token = logs.RUN.set((run.lease.run_id, run.lease.lease_no))
        try:
            return self._attempts[run.claimed.job_type](run)
        except BaseException as error:
            return AttemptResult.of_error(error)
        finally:
            logs.RUN.reset(token)
