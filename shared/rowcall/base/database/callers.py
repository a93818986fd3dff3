"""What a caller may hold: a connection of psycopg2 or psycopg 3, or SQLAlchemy's connection or session on either.

Neither SQLAlchemy nor psycopg 3 is loaded here: who passes an object of theirs has loaded them.
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
    # Of Any: to a type checker, a registry of a Session subclass (Flask-SQLAlchemy's) is not one of Session.
    " | sqlalchemy.orm.scoped_session[Any]"
)
Row: TypeAlias = dict[str, Any]

# Those of SQLAlchemy's drivers that write parameters as our statements do.
DRIVERS = ("psycopg2", "psycopg")


def is_psycopg3(connection: object) -> TypeGuard[Psycopg3Connection]:
    """Whether this is a connection of psycopg 3's own."""
    if not sys.modules.get("psycopg"):
        return False
    from psycopg import Connection

    return isinstance(connection, Connection)


def sqlalchemy_connection(connection: object) -> sqlalchemy.Connection:
    """SQLAlchemy's connection behind what the caller holds, or NotAConnection."""
    found = connection
    if sys.modules.get("sqlalchemy.orm"):
        from sqlalchemy.orm import Session, scoped_session

        # Flask-SQLAlchemy's `db.session` is a registry of sessions, one for each request.
        found = found() if isinstance(found, scoped_session) else found
        found = found.connection() if isinstance(found, Session) else found
    if sys.modules.get("sqlalchemy"):
        from sqlalchemy import Connection

        if isinstance(found, Connection):
            return _on_a_known_driver(found)
    raise NotAConnection(_described(connection), _advice(connection))


def _on_a_known_driver(connection: sqlalchemy.Connection) -> sqlalchemy.Connection:
    dialect = connection.dialect
    if dialect.name != "postgresql" or dialect.driver not in DRIVERS:
        raise NotAConnection(
            f"SQLAlchemy's connection to {dialect.name}+{dialect.driver}",
            "pass one to postgresql+psycopg2 or postgresql+psycopg",
        )
    return connection


def driver_of(connection: Connection) -> PgConnection | Psycopg3Connection:
    """The driver's own connection, in the state of its transaction that the server has answered."""
    if isinstance(connection, PgConnection):
        return connection
    if is_psycopg3(connection):
        with _answered(connection):
            return connection
    driver: Any = sqlalchemy_connection(connection).connection.driver_connection
    return driver  # type: ignore[no-any-return]  # one of DRIVERS


def psycopg3_rows(connection: Psycopg3Connection, sql: str, parameters: Mapping[str, Any] | None) -> list[Row]:
    """Run a statement with psycopg 3, whatever cursors and rows its connection is set to.

    Its parameters are put in by the client, as psycopg2 does it, so that the server gets the same text from both.
    """
    from psycopg import ClientCursor
    from psycopg.rows import dict_row

    with ClientCursor(connection, row_factory=dict_row) as cursor:
        with _answered(connection):
            cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def _answered(connection: Psycopg3Connection) -> AbstractContextManager[object]:
    """In a pipeline, wait at the end for all answers, as the end of an inner pipeline does; the outer one goes on."""
    return connection.pipeline() if connection.pgconn.pipeline_status else nullcontext()


def drivers_error(error: Exception) -> Exception:
    """What the driver raised, also where SQLAlchemy has put it into an error of its own."""
    cause: Exception | None = getattr(error, "orig", None)
    return cause or error


def sqlstate_of(error: Exception) -> str | None:
    """PostgreSQL's code of an error, from either driver."""
    cause = drivers_error(error)
    code: str | None = getattr(cause, "pgcode", None) or getattr(cause, "sqlstate", None)
    return code


def _described(wrong: object) -> str:
    name = type(wrong).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _advice(wrong: object) -> str:
    """How to get a connection from what was passed; classes are compared by name, so that nothing is imported."""
    names = {kind.__name__ for kind in type(wrong).__mro__}
    if any(name.lower().startswith("async") for name in names):
        return "asynchronous connections cannot be used: pass an ordinary one, in a thread of its own"
    if "Engine" in names:
        return "open a transaction on it, `with engine.begin() as connection:`, and pass that connection"
    if "sessionmaker" in names:
        return "call it, and pass the session"
    if isinstance(getattr(wrong, "connection", None), MethodType):
        return "take one from it, `with ....connection() as connection:`, and pass that"
    for attribute in ("session", "connection"):
        if hasattr(wrong, attribute):
            return f"pass its `{attribute}`"
    return "pass an open one, such as that of psycopg2.connect(...)"
