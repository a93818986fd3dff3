"""The executor: threads take waiting runs, attempt them, and settle the results. No SQL happens here."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping

from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.in_flight import InFlight

Attempt = Callable[[InFlightRun], AttemptResult]


class Executor:
    """The handler threads of a worker."""

    def __init__(self, in_flight: InFlight, attempts: Mapping[str, Attempt]) -> None:
        """`attempts` maps each job type to the way its runs are attempted: in the thread or in a child process."""
        self._in_flight = in_flight
        self._attempts = attempts
        self._numbers = itertools.count()
        self._stuck: set[InFlightRun] = set()
        self._process = os.getpid()
        for _ in range(in_flight.threads):
            self.add_thread()

    def add_thread(self) -> None:
        """Start one more thread."""
        # Daemon threads: a handler that never returns must not keep the process from ending.
        threading.Thread(target=self._run, name=f"handler-{next(self._numbers)}", daemon=True).start()

    def replace_thread(self, run: InFlightRun) -> int:
        """Replace the thread of a run that exceeds its time limit; return how many threads are stuck."""
        self._stuck.add(run)
        self.add_thread()
        return len(self._stuck)

    def close(self) -> None:
        """End the idle threads."""
        for _ in range(self._in_flight.threads):
            self._in_flight.waiting.put(None)

    def _run(self) -> None:
        while (run := self._in_flight.waiting.get()) is not None:
            run.begun_at = elapsed()
            self._in_flight.counter.begun(run)
            result = self._result(run)
            if os.getpid() != self._process:
                os._exit(1)  # this is a process that the handler forked: only its parent may settle the run
            if not self._in_flight.settle(run, result):
                self._stuck.discard(run)
                return  # another thread has taken this one's place

    def _result(self, run: InFlightRun) -> AttemptResult:
        """Attempt the run; an error ends the attempt, never the thread."""
        token = logs.RUN.set((run.lease.run_id, run.lease.lease_no))
        try:
            return self._attempts[run.claimed.job_type](run)
        except BaseException as error:
            return AttemptResult.of_error(error)
        finally:
            logs.RUN.reset(token)
