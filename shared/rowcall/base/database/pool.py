"""Creates SQLAlchemy's pool, for the API and migrations.

Only they import this: SQLAlchemy would double the time that a worker takes to start, and cron starts one every minute.
"""

from __future__ import annotations

import os
import weakref

import sqlalchemy

from rowcall.base.database import PgConnection, driver_connect
from rowcall.base.watched import Answers, InternalConnection, WatchedCursor


def open_pool(
    url: str, pool_size: int, answer_seconds: float | None = None, wait_seconds: float = 30.0
) -> sqlalchemy.Engine:
    """Create SQLAlchemy's pool for the API and migrations; the pool replaces a dead connection before using it.

    With `answer_seconds`, a connection on which an answer takes longer is shut down, and the statement fails.
    `wait_seconds` is how long a caller waits for a free connection.
    """
    answers = Answers()

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
        pool_pre_ping=True,
        # SQLAlchemy would look for the hstore type, which we do not use, with operators that depend on the search_path.
        use_native_hstore=False,
    )
    _leave_to_parent(pool)
    sqlalchemy.event.listen(pool, "handle_error", _replace_what_fails_its_ping)
    return pool


def _replace_what_fails_its_ping(context: sqlalchemy.engine.ExceptionContext) -> None:
    """Replace a connection whose ping failed, even if it is alive: a cancelled ping leaves a failed transaction."""
    if context.is_pre_ping:
        context.is_disconnect = True


def _leave_to_parent(pool: sqlalchemy.Engine) -> None:
    """Empty the pool in forked processes (gunicorn --preload), and leave its connections to the parent."""
    known = weakref.ref(pool)

    def begin_anew() -> None:
        inherited = known()
        if inherited is not None:
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=begin_anew)
