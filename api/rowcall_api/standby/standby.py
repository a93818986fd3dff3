"""The standby of this process: whether it can answer now, and how old its answers are.

A thread looks at the leader and the standby, so that no request waits for a standby that does not answer: requests in
progress on it are ended, and go to the leader, as all others do until a later look succeeds.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isinf

import psycopg2
import sqlalchemy

from rowcall.base.clock import elapsed
from rowcall.base.database.pool import open_pool
from rowcall.base.database.wal import leader_position, standby_position, write_out
from rowcall.base.errors import DatabaseUnavailable, DatabaseUnreachable, RightsMissing, RowcallError
from rowcall.base.logs import LogEvent, log
from rowcall.base.redaction import redacted
from rowcall.base.watched import Answers, InternalConnection
from rowcall.schema.revision import check_readable
from rowcall_api.http import database
from rowcall_api.standby.positions import MOST_SECONDS, Positions

LOOK_SECONDS = 0.5

# How long a look may take.
ANSWER_SECONDS = 2.0

# If a standby is older than this although the leader is idle, the leader may not have written its log out.
LATE_SECONDS = 1.0

# A standby that was too old answers again only when it is this young, so that it does not come and go.
BACK_SECONDS = MOST_SECONDS / 2

NOT_YET = "it has not been checked for long enough yet"
GONE = "it cannot be reached"
BUSY = "it has no room for a connection, or replay has locked a table"
NO_RIGHT = "its role may not read the tables, or not execute pg_control_system() and pg_control_checkpoint()"


class StandbyUnfit(Exception):
    """The server answers, but must not answer this request; the message reveals nothing about the servers."""


class Standby:
    """The standby, and what the last look found."""

    def __init__(self, leader_url: str, url: str, threads: int) -> None:
        # Ends what waits for the standby, in all pools that requests use.
        self.answers = Answers()
        # None of the pools asks whether a server still answers: that is what a look is for.
        self.pool = open_pool(url, threads, database.ANSWER_SECONDS, answers=self.answers, asks=False)
        self._looks_at_leader, self._looks = (
            open_pool(to, 1, ANSWER_SECONDS, ANSWER_SECONDS, asks=False) for to in (leader_url, url)
        )
        self._positions = Positions()
        self._database: tuple[str, int] | None = None
        self._is_suspect = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_lost = False
        # Why the leader answers instead; None if the standby does.
        self.away: str | None = NOT_YET
        self.age = 0.0

    def watch(self) -> None:
        """Begin to look, if this process does not yet; a forked process does not have its parent's threads."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=_watch, args=[weakref.ref(self)], name="standby", daemon=True)
                self._thread.start()

    @contextmanager
    def transaction(self, pool: sqlalchemy.Engine) -> Iterator[tuple[InternalConnection, int, float]]:
        """Open a transaction on the standby; also yield the position that it has replayed, and its age."""
        with database.reading(pool) as connection:
            yield connection, *self._checked(connection)

    def suspect(self, error: Exception) -> None:
        """Use the leader until the next look, if this error of a request means that the standby is gone."""
        if isinstance(error, DatabaseUnreachable) and not isinstance(error, DatabaseUnavailable):
            self.away, self._is_suspect = GONE, True

    def look(self) -> None:
        """Ask the leader for its position, and decide whether the standby can answer."""
        with suppress(RowcallError, psycopg2.Error), database.each_alone(self._looks_at_leader) as connection:
            self._look_at_leader(connection)
        detail = None
        try:
            reason = self._unfit()
        except RightsMissing as error:
            reason, detail = NO_RIGHT, str(error)
        except (RowcallError, psycopg2.Error) as error:
            reason = BUSY if isinstance(error, DatabaseUnavailable) else GONE
            detail = str(error)
            self.answers.end_overdue(0)
        self.away = reason
        if reason is NOT_YET:
            return
        if self._is_lost != (reason is not None):
            self._is_lost = reason is not None
            if reason:
                log().warning(LogEvent.STANDBY_LOST, reason=reason, error=detail and redacted(detail))
            else:
                log().info(LogEvent.STANDBY_BACK)

    def _look_at_leader(self, connection: InternalConnection) -> None:
        asked_at = elapsed()
        found = leader_position(connection)
        self._database = found["database"], found["timeline"]
        is_idle = self._positions.last == found["position"]
        self._positions.note(asked_at, found["position"])
        if is_idle and self.age > LATE_SECONDS:
            write_out(connection)

    def _unfit(self) -> str | None:
        """Return why the standby cannot answer now; None if it can."""
        if self._database is None:  # the leader has not answered yet
            return NOT_YET
        if self._is_suspect:
            self._looks.dispose()  # a connection that was opened before may work where a new one does not
        try:
            with database.each_alone(self._looks) as connection:
                _, self.age = self._checked(connection)
                check_readable(connection)
            self._is_suspect = False
        except StandbyUnfit as error:
            return str(error)
        if isinf(self.age) and self._positions.have_just_begun:
            return NOT_YET
        most = BACK_SECONDS if self._is_lost else MOST_SECONDS
        return f"it is more than {most:g} s behind, or the leader does not answer" if self.age > most else None

    def _checked(self, connection: InternalConnection) -> tuple[int, float]:
        """Return the position that this server has replayed, and its age; refuse a server that is not our standby.

        Each connection is checked, because the URL may lead to several servers, and a standby may be promoted.
        """
        found = standby_position(connection)
        if found["in_recovery"] and (found["database"], found["timeline"]) == self._database:
            return found["position"], self._positions.age_of(found["position"])
        connection.close()  # the next one may lead to another server
        if not found["in_recovery"]:
            raise StandbyUnfit("the server is not a standby: it was promoted, or ROWCALL_READ_URL is wrong")
        if self._database and found["database"] == self._database[0]:
            raise StandbyUnfit("it has not followed the leader to its timeline yet")
        raise StandbyUnfit("it is a standby of another database than the leader's")


def _watch(reference: weakref.ref[Standby]) -> None:
    """Look as long as the application exists."""
    while (standby := reference()) is not None:
        standby.look()
        del standby
        time.sleep(LOOK_SECONDS)  # nothing announces a standby that comes or goes
