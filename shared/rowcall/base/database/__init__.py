"""Opens connections, and runs SQL on any kind of connection that a caller may have.

Queue functions take the caller's connection (see callers.py), run their SQL in the caller's transaction, and never
commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INERROR

from rowcall.base.database.callers import Connection as Connection
from rowcall.base.database.callers import PgConnection as PgConnection
from rowcall.base.database.callers import Row as Row
from rowcall.base.database.callers import driver_of, is_psycopg3, psycopg3_rows, sqlalchemy_connection
from rowcall.base.database.callers import drivers_error as drivers_error
from rowcall.base.database.callers import sqlstate_of as sqlstate_of
from rowcall.base.errors import CommitUnconfirmed, DatabaseUnreachable
from rowcall.base.errors.sentences import one_line
from rowcall.base.redaction import redacted
from rowcall.base.watched import (
    InternalConnection,
    WatchedConnection,
    answered,
    patient_prologue,
)

# The largest bigint.  A larger number cannot be a row's id, and must not be sent to the database as one.
LARGEST_ID = 2**63 - 1

CONNECT_TIMEOUT_SECONDS = 5

# These detect a vanished server within half a minute instead of hours: keepalives (in seconds) while we wait for an
# answer, and tcp_user_timeout (in milliseconds) while data is unacknowledged.
SILENCE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

# Not statement_timeout: it would also cut short the wait for a standby, and the commit would count as done too early.
PATIENCE = "SET LOCAL lock_timeout = %(milliseconds)s;"

# A cancelled wait for a synchronous standby makes COMMIT succeed with a warning.  We must receive the warning whatever
# the role's setting is, and must not mistake a lesser notice for it.
SHOW_WARNINGS = "SET LOCAL client_min_messages = warning;"


def prologue_for_statement(lock_seconds: float) -> str:
    """Return the prologue with which a statement of ours, in autocommit, is a transaction of its own."""
    return patient_prologue(lock_seconds) + SHOW_WARNINGS


def prologue_for_transaction(lock_seconds: float, read_only: bool = False) -> str:
    """Return the prologue with which a statement of ours, in autocommit, begins a transaction.

    The driver would begin it in a round trip of its own.
    """
    return f"BEGIN{' READ ONLY' if read_only else ''}; {prologue_for_statement(lock_seconds)}"


def connect(
    url: str, application_name: str = "rowcall", factory: type[PgConnection] = psycopg2.extensions.connection
) -> PgConnection:
    """Open a psycopg2 connection; its first statement begins a transaction."""
    try:
        return driver_connect(url, application_name, factory)
    except psycopg2.OperationalError as error:
        raise unreachable(url, error) from None


def driver_connect(url: str, application_name: str, factory: type[PgConnection]) -> PgConnection:
    """Like connect(), but raise the driver's OperationalError unchanged."""
    try:
        connection: PgConnection = psycopg2.connect(
            url,
            application_name=application_name,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            connection_factory=factory,
            **SILENCE,
        )
    except (psycopg2.ProgrammingError, UnicodeError) as error:
        raise unreachable(url, error) from None
    return connection


# The end of the error's message, which doctor leaves out.
ASK_DOCTOR = " (`rowcall doctor` tries it)"


def unreachable(url: str, error: Exception) -> DatabaseUnreachable:
    """Return the error for a connection that could not be opened."""
    options = "unset PGOPTIONS, which a pooler refuses (and `options` in DATABASE_URL), or connect directly; "
    advice = options if "unsupported startup parameter: options" in str(error) else ""
    return DatabaseUnreachable(
        f"no connection to {redacted(url)}: {one_line(str(error))};"
        f" {advice}check DATABASE_URL and that the server accepts connections{ASK_DOCTOR}"
    )


def connect_internal(url: str, application_name: str = "rowcall") -> InternalConnection:
    """Open a connection for Rowcall's own statements."""
    connection = connect(url, application_name, InternalConnection)
    assert isinstance(connection, InternalConnection)
    return connection


def connect_watched(url: str, application_name: str = "rowcall") -> WatchedConnection:
    """Open a connection for both a handler's statements and Rowcall's."""
    connection = connect(url, application_name, WatchedConnection)
    assert isinstance(connection, WatchedConnection)
    return connection


@contextmanager
def transaction(url: str, factory: type[PgConnection] = psycopg2.extensions.connection) -> Iterator[PgConnection]:
    """Open a connection for one transaction, commit at the end or roll back on an error, and close it."""
    connection = connect(url, factory=factory)
    try:
        with committed(connection):
            yield connection
    finally:
        connection.close()


def internal_transaction(url: str) -> AbstractContextManager[PgConnection]:
    """Like transaction(), for Rowcall's own statements."""
    return transaction(url, InternalConnection)


@contextmanager
def committed(connection: PgConnection, confirm: bool = True) -> Iterator[None]:
    """Commit at the end of the block, roll back on an error.

    A transaction that changes nothing need not be confirmed.

    The connection's own `with` would also try to roll back a broken connection; that fails and hides the first error.
    """
    try:
        yield
    except BaseException:
        if not connection.closed:
            connection.rollback()
        raise
    if confirm:
        commit(connection)
    else:
        connection.commit()


def commit(connection: PgConnection) -> None:
    """Commit; raise CommitUnconfirmed if the server says that it did not wait for the standby."""
    with confirmed(connection):
        connection.commit()


@contextmanager
def confirmed(connection: PgConnection) -> Iterator[None]:
    """Raise CommitUnconfirmed if the commit in the block causes a notice, whatever its text, which may be localized."""
    del connection.notices[:]
    yield
    if connection.notices and isinstance(connection, WatchedConnection):
        raise CommitUnconfirmed(" ".join(" ".join(connection.notices).split()))


def fetch_all(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
    """Run one statement and return its rows, or an empty list if it returns none."""
    if isinstance(connection, PgConnection):
        # Not connection.cursor(), which returns what the app wants: the statement would run, and its rows be misread.
        with psycopg2.extensions.cursor(connection) as cursor:
            _execute(cursor, connection, sql, parameters)
            if cursor.description is None:
                return []
            names = [column.name for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    if is_psycopg3(connection):
        return psycopg3_rows(connection, sql, parameters)
    # Not the raw cursor: SQLAlchemy must know that its transaction has begun, or it would never commit.
    result = sqlalchemy_connection(connection).exec_driver_sql(sql, dict(parameters or {}))
    return [dict(row) for row in result.mappings()] if result.returns_rows else []


@contextmanager
def all_or_nothing(connection: Connection) -> Iterator[None]:
    """Run several statements atomically: in a savepoint, or in a transaction if the connection is in autocommit."""
    driver = driver_of(connection)
    alone = driver.autocommit and driver.info.transaction_status == TRANSACTION_STATUS_IDLE and not _begins(driver)
    fetch_all(connection, "BEGIN" if alone else "SAVEPOINT all_or_nothing")
    try:
        yield
    except BaseException:
        if not driver.closed:
            fetch_all(connection, "ROLLBACK" if alone else "ROLLBACK TO SAVEPOINT all_or_nothing")
            if not alone:  # Otherwise an outer block, whose savepoint has the same name, would roll back to this one.
                fetch_all(connection, "RELEASE SAVEPOINT all_or_nothing")
        raise
    fetch_all(connection, "COMMIT" if alone else "RELEASE SAVEPOINT all_or_nothing")


def _begins(driver: object) -> bool:
    return isinstance(driver, WatchedConnection) and driver.begins


def limit_waiting(connection: Connection, seconds: float) -> None:
    """Limit how long the statements of this transaction wait for a lock."""
    fetch_all(connection, PATIENCE + SHOW_WARNINGS, {"milliseconds": round(seconds * 1000)})


def fetch_tuples(connection: PgConnection, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Like fetch_all(), for the hot path: return plain tuples, on psycopg2 connections only."""
    with connection.cursor() as cursor:
        _execute(cursor, connection, sql, parameters)
        return cursor.fetchall()


def _execute(
    cursor: psycopg2.extensions.cursor, connection: PgConnection, sql: str, parameters: Mapping[str, Any] | None
) -> None:
    """Run a statement; on an internal connection, watch it, and begin each transaction with the prologue."""
    if not isinstance(connection, WatchedConnection):
        cursor.execute(sql, parameters)
    elif connection.prologue is None:
        # A transaction that has failed accepts nothing but a rollback.
        failed = connection.info.transaction_status == TRANSACTION_STATUS_INERROR
        cursor.execute(sql if failed else SHOW_WARNINGS + sql, parameters)
    else:
        if connection.before_each is not None:
            sql = connection.before_each() + sql
        if connection.info.transaction_status == TRANSACTION_STATUS_IDLE:
            # In autocommit, a worker's statements are separate transactions, and no client waits for their commits.
            sql = connection.prologue + ("" if connection.autocommit else SHOW_WARNINGS) + sql
        with answered(connection):
            cursor.execute(sql, parameters)


def fetch_one(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> Row | None:
    """Run a statement and return its first row, or None."""
    rows = fetch_all(connection, sql, parameters)
    return rows[0] if rows else None


def fetch_value(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
    """Run a statement and return the first column of its first row, or None."""
    if isinstance(connection, PgConnection):
        with psycopg2.extensions.cursor(connection) as cursor:
            _execute(cursor, connection, sql, parameters)
            first = cursor.fetchone() if cursor.description else None
            return first[0] if first else None
    row = fetch_one(connection, sql, parameters)
    return next(iter(row.values())) if row else None
