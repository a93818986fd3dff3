"""Execute: claimed runs go in, handlers run on threads, outcomes come out.  No SQL, no transaction is open here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared import logs
from shared.errors import Permanent
from shared.logs import LogEvent
from shared.queue import Claimed
from shared.stored_json import stored
from worker.context import Run
from worker.handlers import Handler


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: with a result, or with the error that the handler raised."""

    claimed: Claimed
    result: Any = None
    error: BaseException | None = None


class Executor:
    """Threads that take runs from one deque and put outcomes into another."""

    def __init__(self, handlers: Mapping[str, Handler], threads: int) -> None:
        self._handlers = handlers
        self._waiting: deque[Claimed] = deque()
        self._outcomes: deque[Outcome] = deque()
        self._work = threading.Condition()
        self._done = threading.Event()
        self._closing = False
        self.threads = threads
        self.held: dict[int, Claimed] = {}
        for number in range(threads):
            # Daemon threads: a handler that never returns must not keep a process from ending.
            threading.Thread(target=self._run, name=f"handler-{number}", daemon=True).start()

    @property
    def free(self) -> int:
        """How many more runs could start at once."""
        return self.threads - len(self.held)

    def submit(self, claimed: Sequence[Claimed]) -> None:
        """Hand runs to the threads."""
        self.held.update((run.run_id, run) for run in claimed)
        with self._work:
            self._waiting.extend(claimed)
            self._work.notify(len(claimed))

    def collect(self, timeout: float) -> list[Outcome]:
        """The outcomes there are; waits this long for the first."""
        self._done.wait(timeout)
        self._done.clear()
        outcomes = []
        while self._outcomes:
            outcome = self._outcomes.popleft()
            del self.held[outcome.claimed.run_id]
            outcomes.append(outcome)
        return outcomes

    def interrupt(self) -> None:
        """End a wait in collect."""
        self._done.set()

    def withdraw(self) -> list[Claimed]:
        """Take back the runs that no thread has begun."""
        with self._work:
            withdrawn = list(self._waiting)
            self._waiting.clear()
        for run in withdrawn:
            del self.held[run.run_id]
        return withdrawn

    def close(self) -> None:
        """Let idle threads end."""
        with self._work:
            self._closing = True
            self._work.notify_all()

    def _run(self) -> None:
        while True:
            with self._work:
                while not self._waiting and not self._closing:
                    self._work.wait()
                if not self._waiting:
                    return
                claimed = self._waiting.popleft()
            self._outcomes.append(self._attempt(claimed))
            self._done.set()

    def _attempt(self, claimed: Claimed) -> Outcome:
        """Call the handler; whatever it raises is its outcome, and none of ours."""
        with logs.bind(run_id=claimed.run_id, lease_no=claimed.lease_no, job_type=claimed.job_type):
            logs.log().debug(LogEvent.RUN_STARTED, attempt=claimed.attempt)
            try:
                result = self._handlers[claimed.job_type](Run(claimed))
                _check_result(claimed, result)
            except BaseException as error:
                return Outcome(claimed, error=error)
        return Outcome(claimed, result)


def _check_result(claimed: Claimed, result: Any) -> None:
    """Refuse here what the database would refuse for the whole batch."""
    try:
        stored(result)
    except ValueError as error:
        raise Permanent(f"what the handler of {claimed.job_type} returned cannot be stored: {error}") from None
