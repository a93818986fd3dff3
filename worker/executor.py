"""Execute: threads take runs from the hands, call their handlers, and settle the outcomes.  No SQL happens here."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping

from shared import logs
from shared.clock import elapsed
from shared.errors import Permanent
from shared.stored_json import stored
from worker.context import Connect, Run
from worker.handlers import Handler
from worker.hands import Hands, HeldRun, Outcome


class AlreadyFinished(Exception):
    """Not an error: the run was finished inside the handler's own transaction."""


class Executor:
    """The handler threads of a worker."""

    def __init__(self, hands: Hands, handlers: Mapping[str, Handler], worker: str, connect: Connect) -> None:
        self._hands = hands
        self._handlers = handlers
        self._worker = worker
        self._connect = connect
        self._numbers = itertools.count()
        for _ in range(hands.threads):
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
            outcome = self._attempt(run)
            logs.RUN.reset(token)
            if not self._hands.settle(outcome):
                return  # another thread has taken this one's place

    def _attempt(self, run: HeldRun) -> Outcome:
        """Call the handler; whatever it raises is its outcome, and none of ours."""
        given = Run(run, self._worker, self._connect)
        try:
            result = self._handlers[run.claimed.job_type](given)
            if given.finished:
                return Outcome(run, error=AlreadyFinished())
            return Outcome(run, _text(run, result))
        except BaseException as error:
            # Also SystemExit: it ends the attempt, not the worker.
            return Outcome(run, error=error)


def _text(run: HeldRun, result: object) -> str | None:
    """The result as it is stored; what the database would refuse for the whole batch is refused here for this run."""
    try:
        return None if result is None else stored(result)
    except ValueError as error:
        raise Permanent(f"what the handler of {run.claimed.job_type} returned cannot be stored: {error}") from None
