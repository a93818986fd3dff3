"""Execute: threads take runs from the hands, have them attempted, and settle the outcomes.  No SQL happens here."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping

from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall_worker.runtime.in_flight import InFlight, InFlightRun, Outcome

Attempt = Callable[[InFlightRun], Outcome]


class Executor:
    """The handler threads of a worker."""

    def __init__(self, in_flight: InFlight, ways: Mapping[str, Attempt]) -> None:
        """The ways: how runs of each job type are attempted, in the thread itself or in a child process."""
        self._hands = in_flight
        self._ways = ways
        self._numbers = itertools.count()
        for _ in range(in_flight.threads):
            self.add_thread()

    def add_thread(self) -> None:
        """One more thread: at the start, and for each one that is stuck in a handler beyond its time limit."""
        # Daemon threads: a handler that never returns must not keep the process from ending.
        threading.Thread(target=self._run, name=f"handler-{next(self._numbers)}", daemon=True).start()

    def close(self) -> None:
        """Let idle threads end."""
        for _ in range(self._hands.threads):
            self._hands.waiting.put(None)

    def _run(self) -> None:
        while (run := self._hands.waiting.get()) is not None:
            run.begun_at = elapsed()
            token = logs.RUN.set(run.key)
            outcome = self._ways[run.claimed.job_type](run)
            logs.RUN.reset(token)
            if not self._hands.settle(outcome):
                return  # another thread has taken this one's place
