"""Intervals: when to make a check that accompanies the tick and must not hold up the schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, all_or_nothing
from rowcall.base.errors import RowcallError, message_of
from rowcall.base.outages import is_outage, is_passing

# A refused check is tried again after this time, because an operator may have fixed the cause.  A lock that has blocked
# the checks for this long is reported too.
REFUSED_SECONDS = 300.0


@dataclass
class Interval:
    """Allows a check every `pause` seconds; `refused` logs the error of a check that the database refuses."""

    pause: float
    refused: Callable[[str], None]
    _next: float = 0.0
    _waiting_since: float | None = None

    def is_over(self) -> bool:
        """Whether it is time for a check; if so, begin the next interval."""
        if elapsed() < self._next:
            return False
        self._next = elapsed() + self.pause
        return True

    @contextmanager
    def checking(self, connection: PgConnection) -> Iterator[None]:
        """Undo and report a check that the database refuses; raise only if the database cannot be used."""
        try:
            with all_or_nothing(connection):
                yield
        except (psycopg2.Error, RowcallError) as error:
            if is_outage(error):
                raise
            self._report(error)
        else:
            self._waiting_since = None

    def _report(self, error: Exception) -> None:
        if is_passing(error):
            self._waiting_since = self._waiting_since or elapsed()
            if elapsed() - self._waiting_since < REFUSED_SECONDS:
                return
            self._waiting_since = None
        else:
            self._next = elapsed() + REFUSED_SECONDS
        self.refused(message_of(error))
