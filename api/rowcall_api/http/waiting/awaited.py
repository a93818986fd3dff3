"""The runs that requests wait for, read by one thread of each process, with one statement for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import flask
import sqlalchemy

from rowcall import queue
from rowcall.base.database import Row
from rowcall.base.errors import DatabaseUnreachable
from rowcall_api.http.database import reachable
from rowcall_api.http.waiting.parking import Waiting
from rowcall_api.http.waiting.poller import Poller, Reader


@dataclass(eq=False)
class Waiter:
    """A waiting request: its run, the test for a state that it waits for, and the function that tells it."""

    run_id: int
    is_news: Callable[[Row], bool]
    tell: Callable[[], object]


class AwaitedRuns(Reader):
    """All requests of a process that wait for a run."""

    def __init__(self, pool: sqlalchemy.Engine, poller: Poller) -> None:
        self._pool = pool
        self._poller = poller
        self._waiters: dict[Waiter, None] = {}

    @property
    def needed(self) -> bool:
        """Whether a request waits for a run."""
        return bool(self._waiters)

    def begin(self, run_id: int, is_news: Callable[[Row], bool], tell: Callable[[], object]) -> Callable[[], None]:
        """Watch a run until there is news of it; return a function that stops watching earlier."""
        waiter = Waiter(run_id, is_news, tell)
        self._waiters[waiter] = None
        self._poller.wake()
        return partial(self._end, waiter)

    def _end(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def run_once(self) -> None:
        """Read the runs, and tell each request whose run has news."""
        waiters = self._waiters.copy()  # other threads add and remove some
        states = self._states({waiter.run_id for waiter in waiters})
        for waiter in waiters:
            if states is not None and _has_news(waiter, states):
                self._end(waiter)
                waiter.tell()

    def _states(self, run_ids: set[int]) -> Mapping[int, Row] | None:
        """Return the runs that exist, or None if the database is not available: the requests then keep waiting."""
        try:
            with reachable(self._pool, changes=False) as connection:
                return queue.states_of(connection, sorted(run_ids))
        except DatabaseUnreachable:
            return None
        except Exception:  # Each request reports the error when it reads its run.
            return {}


def wait_for_run(run_id: int, seconds: float, is_news: Callable[[Row], bool]) -> bool:
    """Wait until there is news of the run, or for this long; return whether the run must be read again."""
    found = flask.current_app.extensions
    waiting: Waiting = found["waiting"]
    awaited: AwaitedRuns = found["awaited_runs"]
    return waiting.until(seconds, partial(awaited.begin, run_id, is_news))


def _has_news(waiter: Waiter, states: Mapping[int, Row]) -> bool:
    return waiter.run_id not in states or waiter.is_news(states[waiter.run_id])
