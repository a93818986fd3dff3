"""Reads on a caller's connection outside a transaction, to see what others commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from psycopg2.extensions import TRANSACTION_STATUS_ACTIVE, TRANSACTION_STATUS_INERROR, TRANSACTION_STATUS_INTRANS

from rowcall.base.database.callers import (
    Connection,
    PgConnection,
    driver_of,
    is_psycopg3,
    session_of,
    sqlalchemy_connection,
)
from rowcall.base.errors import TransactionOpen

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy

# A connection whose transaction we can end.  On a session, that would expire the session's objects.
Plain: TypeAlias = "PgConnection | psycopg.Connection[Any] | sqlalchemy.Connection"

OPEN = (TRANSACTION_STATUS_ACTIVE, TRANSACTION_STATUS_INTRANS, TRANSACTION_STATUS_INERROR)


@contextmanager
def outside_transaction(connection: Connection) -> Iterator[Plain]:
    """Yield a connection for short transactions; raise TransactionOpen if the caller's is in one.

    For a session, this is another connection of its engine; the session has returned its own to the pool.
    """
    session = session_of(connection)
    if session is not None:
        from sqlalchemy import Engine

        _refuse(session.in_transaction())
        bind = session.get_bind()
        # A session that is bound to the caller's own connection, as in tests, sees what that connection sees.
        with bind.connect() if isinstance(bind, Engine) else nullcontext(bind) as another:
            _refuse(another.in_transaction())
            yield sqlalchemy_connection(another)
    elif isinstance(connection, PgConnection) or is_psycopg3(connection):
        _refuse(driver_of(connection).info.transaction_status in OPEN)
        yield connection
    else:
        own = sqlalchemy_connection(connection)
        _refuse(own.in_transaction())
        yield own


def _refuse(in_transaction: bool) -> None:
    if in_transaction:
        raise TransactionOpen


@contextmanager
def ended(connection: Plain) -> Iterator[None]:
    """Read in the block, and end the transaction of these reads when the block ends."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the first error says more
            connection.rollback()
        raise
    connection.rollback()
