"""A caller's connection: one of psycopg2 or psycopg 3, or an SQLAlchemy connection or session on either.

This module does not import SQLAlchemy or psycopg 3 itself: a caller that passes their objects has imported them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import psycopg2.extensions

from rowcall.base.errors import NotAConnection

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy
    import sqlalchemy.orm

PgConnection: TypeAlias = psycopg2.extensions.connection
Psycopg3Connection: TypeAlias = "psycopg.Connection[Any]"
Connection: TypeAlias = (
    "PgConnection | Psycopg3Connection | sqlalchemy.Connection | sqlalchemy.orm.Session"
    # [Any], because scoped_session is invariant, and Flask-SQLAlchemy's uses a subclass of Session.
    " | sqlalchemy.orm.scoped_session[Any]"
)
Row: TypeAlias = dict[str, Any]

# SQLAlchemy's drivers that use the same parameter style as our statements.
DRIVERS = ("psycopg2", "psycopg")


def is_psycopg3(connection: object) -> TypeGuard[Psycopg3Connection]:
    """Return whether this is a psycopg 3 connection."""
    if not sys.modules.get("psycopg"):
        return False
    from psycopg import Connection

    return isinstance(connection, Connection)


def session_of(connection: object) -> sqlalchemy.orm.Session | None:
    """Return the SQLAlchemy session that the caller's object is or stands for; None if there is none."""
    if not sys.modules.get("sqlalchemy.orm"):
        return None
    from sqlalchemy.orm import Session, scoped_session

    # Flask-SQLAlchemy's `db.session` is a registry of sessions, one for each request.
    found = connection() if isinstance(connection, scoped_session) else connection
    return found if isinstance(found, Session) else None


def sqlalchemy_connection(connection: object) -> sqlalchemy.Connection:
    """Return the SQLAlchemy connection behind the caller's object, or raise NotAConnection."""
    session = session_of(connection)
    found = connection if session is None else session.connection()
    if sys.modules.get("sqlalchemy"):
        from sqlalchemy import Connection

        if isinstance(found, Connection):
            return _on_a_known_driver(found)
    raise NotAConnection(_described(connection), _advice(connection))


def _on_a_known_driver(connection: sqlalchemy.Connection) -> sqlalchemy.Connection:
    dialect = connection.dialect
    if dialect.name != "postgresql" or dialect.driver not in DRIVERS:
        raise NotAConnection(
            f"an SQLAlchemy connection to {dialect.name}+{dialect.driver}",
            "pass one to postgresql+psycopg2 or postgresql+psycopg",
        )
    return connection


def driver_of(connection: Connection) -> PgConnection | Psycopg3Connection:
    """Return the driver's connection; in a pipeline, wait for all answers, so that its transaction status is right."""
    if isinstance(connection, PgConnection):
        return connection
    if is_psycopg3(connection):
        with _answered(connection):
            return connection
    driver: Any = sqlalchemy_connection(connection).connection.driver_connection
    return driver  # type: ignore[no-any-return]  # one of DRIVERS


def psycopg3_rows(connection: Psycopg3Connection, sql: str, parameters: Mapping[str, Any] | None) -> list[Row]:
    """Run a statement with psycopg 3, whatever the connection's cursor and row factories are.

    The client inserts the parameters, as psycopg2 does, so that both drivers send the same text.
    """
    from psycopg import ClientCursor
    from psycopg.rows import dict_row

    with ClientCursor(connection, row_factory=dict_row) as cursor:
        with _answered(connection):
            cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def _answered(connection: Psycopg3Connection) -> AbstractContextManager[object]:
    """In a pipeline, wait for all answers at the end of the block, by nesting a pipeline; the outer one continues."""
    return connection.pipeline() if connection.pgconn.pipeline_status else nullcontext()


def drivers_error(error: Exception) -> Exception:
    """Return the driver's error, unwrapped if SQLAlchemy wrapped it."""
    cause: Exception | None = getattr(error, "orig", None)
    return cause or error


def sqlstate_of(error: Exception) -> str | None:
    """Return the SQLSTATE of an error from either driver."""
    cause = drivers_error(error)
    code: str | None = getattr(cause, "pgcode", None) or getattr(cause, "sqlstate", None)
    return code


def _described(wrong: object) -> str:
    name = type(wrong).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _advice(wrong: object) -> str:
    """Say how to get a connection from what was passed; compare classes by name, so that nothing is imported."""
    names = {kind.__name__ for kind in type(wrong).__mro__}
    if any(name.lower().startswith("async") for name in names):
        return "asynchronous connections cannot be used: pass a synchronous one, in a separate thread"
    if "Engine" in names:
        return "open a transaction on it, `with engine.begin() as connection:`, and pass that connection"
    if "sessionmaker" in names:
        return "call it, and pass the session"
    if isinstance(getattr(wrong, "connection", None), MethodType):
        return "take one from it, `with ....connection() as connection:`, and pass that"
    for attribute in ("session", "connection"):
        if hasattr(wrong, attribute):
            return f"pass its `{attribute}`"
    return "pass an open one, such as the one that psycopg2.connect(...) returns"
