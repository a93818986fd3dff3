"""The connections to a real PostgreSQL: two for each actor, and one that observes and back-dates rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from psycopg2.extras import Json

from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.queue.fragments import CHANNEL
from tests.queue.model.run import COLUMNS, Run
from tests.queue.model.world import Move
from tests.support.processes import LIMIT_SECONDS

# A statement is blocked as soon as it waits for a lock; check this often until it is blocked or done.
BLOCKED = "SELECT cardinality(pg_blocking_pids(%(pid)s)) > 0"
LOOK_SECONDS = 0.001

# audit_log only grows, so an id marks where an example's rows start.
EMPTY = """
DELETE FROM rowcall.job_runs;
DELETE FROM rowcall.request_keys;
DELETE FROM rowcall.queues;
DELETE FROM rowcall.workers;
INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency, sleeps_until)
VALUES ('sleeper', 'host', 1, '1', '{noop,from_the_future}', 1, now() + interval '1 day');
SELECT setval(pg_get_serial_sequence('rowcall.job_runs', 'id'), 1, false);
SELECT coalesce(max(id), 0) FROM rowcall.audit_log
"""

INSERT = f"""
INSERT INTO rowcall.job_runs ({", ".join(COLUMNS[1:])}) VALUES ({", ".join(f"%({name})s" for name in COLUMNS[1:])})
RETURNING id
"""

BACK_DATE = "UPDATE rowcall.job_runs SET run_at = %(run_at)s, locked_until = %(locked_until)s WHERE id = %(id)s"

PAUSE = """
INSERT INTO rowcall.queues (name, paused_at) VALUES (%(name)s, CASE WHEN %(paused)s THEN now() END)
ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at
"""

SLEEP = "UPDATE rowcall.workers SET sleeps_until = CASE WHEN %(asleep)s THEN now() + interval '1 day' END"

ATTEMPTS = """
SELECT run_id, lease_no, attempt, outcome, worker, started_at, ended_at, error_type, error, stack, permanent
FROM rowcall.job_attempts ORDER BY run_id, lease_no
"""

AUDIT = """
SELECT who, action, subject, subject_id, before, after, request_id FROM rowcall.audit_log
WHERE id > %(mark)s ORDER BY id
"""


# When the transaction started, and the answers within it.
Begun: TypeAlias = tuple[datetime, list[Any]]


@dataclass(frozen=True)
class Made:
    """Moves made in a transaction that started `now`, with their answers; `woke` if it notified the workers."""

    now: datetime
    answers: Sequence[Any]
    woke: bool


class Connections:
    """The connections, and what is sent through them."""

    def __init__(self, url: str, *actors: str) -> None:
        self._watching = _connect(url)
        self._watching.autocommit = True
        self._acting = {actor: (_connect(url), _connect(url)) for actor in actors}
        self._mark = 0

    def close(self) -> None:
        """Close all connections."""
        for connection in (self._watching, *(connection for pair in self._acting.values() for connection in pair)):
            connection.close()

    # What the actors do

    def alone(self, *moves: Move) -> Made:
        """Make moves one after another, and commit them together."""
        connection = self._acting[moves[0].actor][0]
        try:
            return _ended(connection, *_begun(connection, *moves), commits=True)
        finally:
            connection.rollback()

    def at_once(self, first: Move, second: Move, *, commits: bool) -> tuple[Made, Made]:
        """Make the second move before the first one's transaction ends, by commit or rollback."""
        one, other = self._acting[first.actor][0], self._acting[second.actor][1]
        try:
            earlier = _begun(one, first)
            with ThreadPoolExecutor(max_workers=1) as elsewhere:
                later = elsewhere.submit(_begun, other, second)
                try:
                    self._wait(later, other)
                    return _ended(one, *earlier, commits=commits), _ended(other, *later.result(), commits=True)
                finally:
                    one.rollback()
        finally:
            one.rollback()
            other.rollback()

    def _wait(self, later: Future[Begun], connection: PgConnection) -> None:
        """Return when the move is made or waits for a lock."""
        pid = {"pid": connection.info.backend_pid}
        until = time.monotonic() + LIMIT_SECONDS
        while not later.done() and not fetch_value(self._watching, BLOCKED, pid):
            assert time.monotonic() < until, "a move is neither made nor blocked"
            wait([later], timeout=LOOK_SECONDS)

    # Observe and back-date

    def empty(self) -> None:
        """Delete all runs, and restart their ids."""
        self._mark = fetch_value(self._watching, EMPTY)

    def now(self) -> datetime:
        """Return the database's time."""
        moment: datetime = fetch_value(self._watching, "SELECT now()")
        return moment

    def insert(self, run: Run) -> None:
        """Insert a run, and set its id."""
        values = {name: Json(value) if isinstance(value, Mapping) else value for name, value in vars(run).items()}
        run.id = fetch_value(self._watching, INSERT, values)

    def back_date(self, run: Run) -> None:
        """Update when it is due and when its lease ends."""
        fetch_all(self._watching, BACK_DATE, vars(run))

    def pause(self, name: str, paused: bool) -> None:
        """Pause or resume a queue."""
        fetch_all(self._watching, PAUSE, {"name": name, "paused": paused})

    def sleep(self, asleep: bool) -> None:
        """Let the worker that serves all types sleep or wake."""
        fetch_all(self._watching, SLEEP, {"asleep": asleep})

    def rows(self) -> dict[int, Row]:
        """Return the runs in the table."""
        return {
            row["id"]: row for row in fetch_all(self._watching, f"SELECT {', '.join(COLUMNS)} FROM rowcall.job_runs")
        }

    def attempts(self) -> list[Row]:
        """Return the history."""
        return fetch_all(self._watching, ATTEMPTS)

    def audit(self) -> list[Row]:
        """Return what was audited since the table was emptied."""
        return fetch_all(self._watching, AUDIT, {"mark": self._mark})


def _connect(url: str) -> PgConnection:
    connection = database.connect(url)
    fetch_all(connection, f"SET TIME ZONE 'UTC'; LISTEN {CHANNEL}")
    connection.commit()
    return connection


def _begun(connection: PgConnection, *moves: Move) -> Begun:
    """Make moves in a new transaction."""
    return fetch_value(connection, "SELECT now()"), [move.perform(connection) for move in moves]


def _ended(connection: PgConnection, now: datetime, answers: Sequence[Any], *, commits: bool) -> Made:
    """End the transaction; a session receives its own notifications with the answer to its commit."""
    if commits:
        connection.commit()
    else:
        connection.rollback()
    connection.poll()
    woke = any(heard.pid == connection.info.backend_pid for heard in connection.notifies)
    connection.notifies.clear()
    return Made(now, answers, woke)
