"""The application's connection pool and its transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import flask
import psycopg2
import sqlalchemy
from psycopg2.errors import (
    InsufficientPrivilege,
    LockNotAvailable,
    QueryCanceled,
    ReadOnlySqlTransaction,
)
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from rowcall.base.database import (
    committed,
    confirmed,
    drivers_error,
    limit_waiting,
    prologue_for_statement,
    prologue_for_transaction,
)
from rowcall.base.errors import DatabaseUnavailable, DatabaseUnreachable, RightsMissing
from rowcall.base.errors.sentences import one_line
from rowcall.base.outages import LOCKED, READ_ONLY_REMEDY, is_outage
from rowcall.base.redaction import redacted
from rowcall.base.watched import InternalConnection, reset_session
from rowcall.schema import SCHEMA_ERRORS, check_revision

# How long a request may wait for another transaction's lock, such as on the same key or run.  Without a limit, a few
# such requests would block all threads.  It is shorter than the grace period of a stopping server.
PATIENCE_SECONDS = 8.0
ALONE, TOGETHER = prologue_for_statement(PATIENCE_SECONDS), prologue_for_transaction(PATIENCE_SECONDS)
READING = prologue_for_transaction(PATIENCE_SECONDS, read_only=True)

# How long a request may wait for the result of a statement.  TCP keepalive does not help if a proxy still acknowledges
# packets although its server has vanished.
ANSWER_SECONDS = 25.0

READ_ONLY = f"the database is read-only: {READ_ONLY_REMEDY}"


class Source(Protocol):
    """Where a request reads, in `flask.g.source`, if not from the leader."""

    def transaction(self) -> AbstractContextManager[InternalConnection]:
        """Open a transaction that only reads."""


def attach(app: flask.Flask, pool: sqlalchemy.Engine) -> None:
    """Attach the pool to the application."""
    app.extensions["database"] = pool


@contextmanager
def transaction() -> Iterator[InternalConnection]:
    """Open a transaction: committed at the end of the block, rolled back on an error.

    A request that has its own pool, in `flask.g.pool`, uses that pool.
    """
    changes = not flask.has_request_context() or flask.request.method not in ("GET", "HEAD")
    source: Source | None = flask.g.get("source")
    with source.transaction() if source else reachable(_pool(), changes=changes) as connection:
        yield connection


@contextmanager
def statement() -> Iterator[InternalConnection]:
    """Open a connection on which each statement is a transaction of its own, for one that changes nothing."""
    with each_alone(_pool()) as connection:
        yield connection


@contextmanager
def each_alone(pool: sqlalchemy.Engine) -> Iterator[InternalConnection]:
    """Like statement(), on a connection of this pool."""
    with _explained(pool), _lent(pool, ALONE) as connection:
        yield connection


@contextmanager
def reading(pool: sqlalchemy.Engine) -> Iterator[InternalConnection]:
    """Open a transaction in which the server refuses to change anything, on a connection of this pool."""
    with _explained(pool), _lent(pool, READING) as connection, committed(connection, confirm=False):
        yield connection


@contextmanager
def app_transaction() -> Iterator[sqlalchemy.Connection]:
    """Open a transaction with the database's own search_path, for an app's statements, whose settings end with it."""
    pool: sqlalchemy.Engine = flask.current_app.extensions["database"]
    with _explained(pool, internal=False), pool.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, InternalConnection)
        with confirmed(driver), connection.begin():
            limit_waiting(connection, PATIENCE_SECONDS)
            yield connection
            # Drop the notices of the statements, so that only those of the commit are examined.
            del driver.notices[:]
        if not reset_session(driver):
            connection.invalidate()


@contextmanager
def reachable(pool: sqlalchemy.Engine, changes: bool = True) -> Iterator[InternalConnection]:
    """Open a transaction on a pooled connection; raise DatabaseUnreachable or CommitUnconfirmed on an outage.

    A transaction that changes nothing needs no confirmation, although its locks make its commit wait for a standby.
    """
    with _explained(pool), _lent(pool, TOGETHER) as connection, committed(connection, confirm=changes):
        yield connection


def _pool() -> sqlalchemy.Engine:
    pool: sqlalchemy.Engine = flask.g.get("pool") or flask.current_app.extensions["database"]
    return pool


@contextmanager
def _lent(pool: sqlalchemy.Engine, prologue: str) -> Iterator[InternalConnection]:
    """Lend the driver's connection for Rowcall's own statements, which need nothing of SQLAlchemy but its pool."""
    lent = pool.raw_connection()
    driver = lent.driver_connection
    assert isinstance(driver, InternalConnection)
    driver.prologue, driver.autocommit = prologue, True
    try:
        yield driver
    finally:
        if driver.closed or driver.info.transaction_status != TRANSACTION_STATUS_IDLE:
            lent.invalidate()
        else:
            driver.autocommit = False
            lent.close()


@contextmanager
def _explained(pool: sqlalchemy.Engine, internal: bool = True) -> Iterator[None]:
    """Turn an outage, a lock or missing rights into an error that says what to do.

    An app's statements run on SQLAlchemy's connection, so an error of the driver itself is of another connection.
    """
    errors = (psycopg2.Error, sqlalchemy.exc.DBAPIError) if internal else (sqlalchemy.exc.DBAPIError,)
    try:
        yield
    except sqlalchemy.exc.TimeoutError:
        raise DatabaseUnavailable("all connections to the database are busy: try again in a moment") from None
    except errors as error:
        cause = drivers_error(error)
        if reason := _unavailable(cause):
            raise DatabaseUnavailable(reason) from error
        if internal and isinstance(cause, InsufficientPrivilege):
            raise RightsMissing(cause.diag.message_primary or "") from error
        if isinstance(cause, SCHEMA_ERRORS):
            with reachable(pool) as connection:
                check_revision(connection)
        if not (isinstance(cause, psycopg2.OperationalError) or is_outage(cause)):
            raise
        reason = redacted(one_line(str(cause)))
        raise DatabaseUnreachable(f"the database cannot be reached: {reason}") from error


def _unavailable(cause: Exception) -> str | None:
    """Return why a reachable server failed, or None if neither another try nor its operator can help."""
    if isinstance(cause, LockNotAvailable):
        return LOCKED
    if isinstance(cause, psycopg2.extensions.TransactionRollbackError):
        return "another transaction changed the same rows: try again in a moment"
    if isinstance(cause, QueryCanceled):
        return "the server cancelled a statement of this request: try again in a moment"
    return READ_ONLY if isinstance(cause, ReadOnlySqlTransaction) else None
