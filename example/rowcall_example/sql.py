"""Runs this app's SQL in the caller's transaction, on the caller's connection.

A handler gets psycopg2's connection from its run, a route gets SQLAlchemy's from the API.  The queries work with both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg2.extensions
import psycopg2.extras

if TYPE_CHECKING:
    import sqlalchemy  # not at run time: the worker does not need it, and would start more slowly

Connection: TypeAlias = "psycopg2.extensions.connection | sqlalchemy.Connection"
Row: TypeAlias = dict[str, Any]


def fetch_all(connection: Connection, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
    """Run one statement and return its rows, or an empty list if it returns none."""
    if isinstance(connection, psycopg2.extensions.connection):
        with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute(sql, values)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []
    result = connection.exec_driver_sql(sql, dict(values or {}))
    return [dict(row) for row in result.mappings()] if result.returns_rows else []


def fetch_one(connection: Connection, sql: str, values: Mapping[str, Any] | None = None) -> Row | None:
    """Return the first row, if there is one."""
    rows = fetch_all(connection, sql, values)
    return rows[0] if rows else None


def fetch_value(connection: Connection, sql: str, values: Mapping[str, Any] | None = None) -> Any:
    """Return the first column of the first row, if there is one."""
    row = fetch_one(connection, sql, values)
    return next(iter(row.values())) if row else None
