"""Connections, and one way to run SQL on any of the kinds a caller may hold.

Queue functions take the caller's connection (see callers.py), run their SQL in the caller's transaction, and never
commit.

SQLAlchemy is loaded by those who use it: a worker that cron wakes every minute would spend half of its start on it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions
import psycopg2.extras
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from rowcall.base.database.callers import Connection as Connection
from rowcall.base.database.callers import PgConnection as PgConnection
from rowcall.base.database.callers import Row as Row
from rowcall.base.database.callers import driver_of, is_psycopg3, psycopg3_rows, sqlalchemy_connection
from rowcall.base.database.callers import drivers_error as drivers_error
from rowcall.base.database.callers import sqlstate_of as sqlstate_of
from rowcall.base.errors import CommitUnconfirmed, DatabaseUnreachable
from rowcall.base.redaction import redacted
from rowcall.base.watched import (
    Answers,
    InternalConnection,
    WatchedConnection,
    WatchedCursor,
    answered,
    patient_prologue,
)

if TYPE_CHECKING:
    import sqlalchemy

# A bigint; what is beyond it can be no row's id, and must not reach the database as one.
LARGEST_ID = 2**63 - 1

CONNECT_TIMEOUT_SECONDS = 5

# A server that vanished without a word is found out within half a minute, instead of hours: by asking it where one
# waits for its answer (seconds), and by what it leaves unacknowledged (milliseconds).
SILENCE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

# Not statement_timeout: that would also cut short the wait for a standby, and call committed what is not there yet.
PATIENCE = "SET LOCAL lock_timeout = %(milliseconds)s;"

# A cancelled wait for a synchronous standby makes COMMIT succeed with a warning.  It must reach us, whatever the role's
# setting, and no lesser notice may be taken for it.
SHOW_WARNINGS = "SET LOCAL client_min_messages = warning;"


def connect(
    url: str, application_name: str = "rowcall", factory: type[PgConnection] = psycopg2.extensions.connection
) -> PgConnection:
    """A psycopg2 connection, in a transaction from its first statement on."""
    try:
        return _connect(url, application_name, factory)
    except psycopg2.OperationalError as error:
        raise _unreachable(url, error) from None


def _connect(url: str, application_name: str, factory: type[PgConnection]) -> PgConnection:
    """The same, with the driver's error unchanged."""
    try:
        connection: PgConnection = psycopg2.connect(
            url,
            application_name=application_name,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            connection_factory=factory,
            **SILENCE,
        )
    except (psycopg2.ProgrammingError, UnicodeError) as error:
        raise _unreachable(url, error) from None
    return connection


def _unreachable(url: str, error: Exception) -> DatabaseUnreachable:
    return DatabaseUnreachable(
        f"no connection to {redacted(url)}: {_reason(error)};"
        " check DATABASE_URL and that the server accepts connections (`rowcall doctor` tries it)"
    )


def connect_internal(url: str, application_name: str = "rowcall") -> InternalConnection:
    """The same for Rowcall's own statements alone."""
    connection = connect(url, application_name, InternalConnection)
    assert isinstance(connection, InternalConnection)
    return connection


def connect_watched(url: str, application_name: str = "rowcall") -> WatchedConnection:
    """The same for a handler's own statements among Rowcall's."""
    connection = connect(url, application_name, WatchedConnection)
    assert isinstance(connection, WatchedConnection)
    return connection


@contextmanager
def transaction(url: str, factory: type[PgConnection] = psycopg2.extensions.connection) -> Iterator[PgConnection]:
    """A connection of its own for one transaction: committed at the end, rolled back on an error, then closed."""
    connection = connect(url, factory=factory)
    try:
        with committed(connection):
            yield connection
    finally:
        connection.close()


def internal_transaction(url: str) -> AbstractContextManager[PgConnection]:
    """The same for Rowcall's own statements alone."""
    return transaction(url, InternalConnection)


@contextmanager
def committed(connection: PgConnection) -> Iterator[None]:
    """Commit at the end of the block, roll back on an error.

    The connection's own `with` would also roll back one that is broken, fail at that, and hide what had broken it.
    """
    try:
        yield
    except BaseException:
        if not connection.closed:
            connection.rollback()
        raise
    commit(connection)


def commit(connection: PgConnection) -> None:
    """Commit, or CommitUnconfirmed where the server says that it did not wait for the standby."""
    with confirmed(connection):
        connection.commit()


@contextmanager
def confirmed(connection: PgConnection) -> Iterator[None]:
    """Around a commit: any notice of the server means that it is not confirmed, because the texts are localised."""
    del connection.notices[:]
    yield
    if connection.notices and isinstance(connection, WatchedConnection):
        raise CommitUnconfirmed(" ".join(" ".join(connection.notices).split()))


def engine(url: str, pool_size: int, answer_seconds: float | None = None) -> sqlalchemy.Engine:
    """SQLAlchemy's pool for API and migrations; a connection that died in the pool is replaced before it is used.

    With `answer_seconds`, one on which an answer takes longer is shut down: its statement fails.
    """
    import sqlalchemy

    answers = Answers()

    def connected() -> PgConnection:
        connection = _connect(url, "rowcall api", InternalConnection)
        assert isinstance(connection, InternalConnection)
        if answer_seconds is not None:
            connection.cursor_factory = WatchedCursor
            answers.watch(connection, answer_seconds)
            answers.keep()
        return connection

    pool = sqlalchemy.create_engine(
        # libpq reads the URL: SQLAlchemy would not understand all that it does, such as several hosts.
        "postgresql+psycopg2://",
        creator=connected,
        pool_size=pool_size,
        max_overflow=0,
        hide_parameters=True,
        pool_pre_ping=True,
        # It would look for a type that we do not use, with operators that the search_path decides about.
        use_native_hstore=False,
    )
    _leave_to_parent(pool)
    sqlalchemy.event.listen(pool, "handle_error", _replace_what_fails_its_ping)
    return pool


def _replace_what_fails_its_ping(context: sqlalchemy.engine.ExceptionContext) -> None:
    """Also where the ping was cancelled, which leaves a failed transaction, and the connection is not lost."""
    if context.is_pre_ping:
        context.is_disconnect = True


def _leave_to_parent(pool: sqlalchemy.Engine) -> None:
    """In a process that is forked from this one, as gunicorn does with --preload, begin with an empty pool."""
    known = weakref.ref(pool)

    def begin_anew() -> None:
        inherited = known()
        if inherited is not None:
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=begin_anew)


def fetch_all(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
    """Run one statement and return its rows; a statement that returns none gives an empty list."""
    if isinstance(connection, PgConnection):
        with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            _execute(cursor, connection, sql, parameters)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []
    if is_psycopg3(connection):
        return psycopg3_rows(connection, sql, parameters)
    # exec_driver_sql, not the raw cursor: SQLAlchemy must know that its transaction has begun, or it never commits.
    result = sqlalchemy_connection(connection).exec_driver_sql(sql, dict(parameters or {}))
    return [dict(row) for row in result.mappings()] if result.returns_rows else []


@contextmanager
def all_or_nothing(connection: Connection) -> Iterator[None]:
    """Run several statements atomically: in a savepoint, or in a transaction if the connection is in autocommit."""
    driver = driver_of(connection)
    alone = driver.autocommit and driver.info.transaction_status == TRANSACTION_STATUS_IDLE
    fetch_all(connection, "BEGIN" if alone else "SAVEPOINT all_or_nothing")
    try:
        yield
    except BaseException:
        if not driver.closed:
            fetch_all(connection, "ROLLBACK" if alone else "ROLLBACK TO SAVEPOINT all_or_nothing")
        raise
    fetch_all(connection, "COMMIT" if alone else "RELEASE SAVEPOINT all_or_nothing")


def limit_waiting(connection: Connection, seconds: float, internal: bool) -> None:
    """Let statements of this transaction fail that wait longer for what another one holds.

    An internal transaction gets its prologue in the same round trip.
    """
    if internal:
        fetch_all(connection, patient_prologue(seconds) + SHOW_WARNINGS)
    else:
        fetch_all(connection, PATIENCE + SHOW_WARNINGS, {"milliseconds": round(seconds * 1000)})


def fetch_tuples(connection: PgConnection, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The same for the hot path: plain tuples, on psycopg2's own connection."""
    with connection.cursor() as cursor:
        _execute(cursor, connection, sql, parameters)
        return cursor.fetchall()


def _execute(
    cursor: psycopg2.extensions.cursor, connection: PgConnection, sql: str, parameters: Mapping[str, Any] | None
) -> None:
    """Run a statement; on an internal connection watched, and behind what its transaction begins with."""
    if not isinstance(connection, WatchedConnection):
        cursor.execute(sql, parameters)
    elif connection.prologue is None:
        cursor.execute(SHOW_WARNINGS + sql, parameters)
    else:
        if connection.info.transaction_status == TRANSACTION_STATUS_IDLE:
            # A worker's statements are separate transactions, and no client waits for their commits.
            sql = connection.prologue + ("" if connection.autocommit else SHOW_WARNINGS) + sql
        with answered(connection):
            cursor.execute(sql, parameters)


def fetch_one(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> Row | None:
    """The first row of a statement, if there is one."""
    rows = fetch_all(connection, sql, parameters)
    return rows[0] if rows else None


def fetch_value(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
    """The first column of the first row, if there is one."""
    row = fetch_one(connection, sql, parameters)
    return next(iter(row.values())) if row else None


def _reason(error: Exception) -> str:
    """The driver's reason on one line, without what repeats the address."""
    return " ".join(str(error).split()).rstrip(".")
