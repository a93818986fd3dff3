"""Creates SQLAlchemy's pool, for the API and migrations.

Only they import this: SQLAlchemy would double the time that a worker takes to start, and cron starts one every minute.
"""

from __future__ import annotations

import os
import weakref

import psycopg2
import sqlalchemy
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy.pool import ConnectionPoolEntry

from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, driver_connect
from rowcall.base.watched import Answers, InternalConnection, WatchedCursor, was_ended

# A connection that was idle for longer is asked whether its server still answers; under load, none is.
QUIET_SECONDS = 0.1

# Key in the details of a connection: when it was last returned to the pool.
RETURNED = "returned"


def open_pool(
    url: str,
    pool_size: int,
    answer_seconds: float | None = None,
    wait_seconds: float = 30.0,
    answers: Answers | None = None,
    asks: bool = True,
) -> sqlalchemy.Engine:
    """Create SQLAlchemy's pool for the API and migrations; the pool replaces a dead connection before using it.

    With `answer_seconds`, a connection on which an answer takes longer is shut down, and the statement fails; the owner
    of `answers` can do that earlier.  `wait_seconds` is how long a caller waits for a free connection.  Unless the pool
    `asks` the server, a connection that was idle is used without asking whether the server still answers.
    """
    answers = answers or Answers()

    def connected() -> PgConnection:
        connection = driver_connect(url, "rowcall api", InternalConnection)
        assert isinstance(connection, InternalConnection)
        if answer_seconds is not None:
            connection.cursor_factory = WatchedCursor
            answers.watch(connection, answer_seconds)
            answers.keep()
        return connection

    pool = sqlalchemy.create_engine(
        # libpq parses the URL, because SQLAlchemy does not support all of its syntax, such as several hosts.
        "postgresql+psycopg2://",
        creator=connected,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=wait_seconds,
        hide_parameters=True,
        # SQLAlchemy would look for the hstore type, which we do not use, with operators that depend on the search_path.
        use_native_hstore=False,
    )
    _leave_to_parent(pool)
    sqlalchemy.event.listen(pool, "checkin", _note_return)
    sqlalchemy.event.listen(pool, "checkout", lambda driver, record, _: _check(driver, record, asks))
    return pool


def _note_return(driver: InternalConnection | None, record: ConnectionPoolEntry) -> None:
    """Note when the connection was last used (SQLAlchemy's hook)."""
    record.info[RETURNED] = elapsed()


def _check(driver: InternalConnection, record: ConnectionPoolEntry, asks: bool) -> None:
    """Replace a connection that cannot be used; SQLAlchemy's own ping would cost each request a round trip.

    A server that closed the connection has told us so; one that vanished shows that only when it does not answer.
    """
    used_at = record.info.get(RETURNED)
    if used_at is None:
        return  # opened just now: if it does not work, the statement says why
    if driver.closed or was_ended(driver):
        raise sqlalchemy.exc.InvalidatePoolError("the server has closed the connection")
    if driver.info.transaction_status != TRANSACTION_STATUS_IDLE:
        raise sqlalchemy.exc.DisconnectionError("the connection was left in a transaction")
    if asks and elapsed() > used_at + QUIET_SECONDS:
        _ping(driver)


def _ping(driver: InternalConnection) -> None:
    try:
        driver.autocommit = True
        with driver.cursor() as cursor:
            cursor.execute("SELECT 1")
        driver.autocommit = False
    except psycopg2.Error as error:
        raise sqlalchemy.exc.InvalidatePoolError(str(error)) from error


def _leave_to_parent(pool: sqlalchemy.Engine) -> None:
    """Empty the pool in forked processes (gunicorn --preload), and leave its connections to the parent."""
    known = weakref.ref(pool)

    def begin_anew() -> None:
        inherited = known()
        if inherited is not None:
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=begin_anew)
