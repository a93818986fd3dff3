"""Indexes that are built CONCURRENTLY: outside any transaction, and again where an earlier build was interrupted."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy
from sqlalchemy.exc import DBAPIError

from rowcall.base.database import fetch_one
from rowcall.base.errors import MigrationRefused

# One interruption is mended by one more try; whoever fails this often has another reason.
TRIES = 3

FIND = """
SELECT pg_index.indisvalid AS valid, pg_index.indrelid::regclass::text AS table
FROM pg_index WHERE indexrelid = to_regclass(%(name)s)
"""


def bring(pool: sqlalchemy.Engine, wanted: Mapping[str, str | None]) -> tuple[str, ...]:
    """Make the indexes what they should be; the names of those that were built or dropped."""
    if not wanted:
        return ()
    with pool.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        return tuple(name for name, statement in wanted.items() if _brought(connection, name, statement))


def _brought(connection: sqlalchemy.Connection, name: str, statement: str | None) -> bool:
    try:
        if statement is None:
            return _dropped(connection, name)
        return _built(connection, name, statement)
    except DBAPIError as error:
        raise MigrationRefused(
            f"the index rowcall.{name} was not finished: {' '.join(str(error.orig).split())}; the tables are migrated"
            " already: mend that, and run `rowcall migrate` again, which builds it anew (as the tables' owner; without"
            " a limit in time: `PGOPTIONS='-c statement_timeout=0'`)"
        ) from None


def _dropped(connection: sqlalchemy.Connection, name: str) -> bool:
    there = _state(connection, name) is not None
    if there:
        connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS rowcall.{name}")
    return there


def _built(connection: sqlalchemy.Connection, name: str, statement: str) -> bool:
    """Build it, unless it is there and valid.  What an interrupted build left is dropped first."""
    for built in range(TRIES):
        valid = _state(connection, name)
        if valid:
            return built > 0
        if valid is False:
            connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS rowcall.{name}")
        connection.exec_driver_sql(statement)
    return True


def _state(connection: sqlalchemy.Connection, name: str) -> bool | None:
    """Whether the index is valid; None where there is none.

    The server goes on with the build of a migrator that was killed.  It holds a lock on the table until it has ended,
    which is waited for, so that its index is not taken for one that was left behind.
    """
    found = fetch_one(connection, FIND, {"name": f"rowcall.{name}"})
    if found and not found["valid"]:
        with connection.execution_options(isolation_level="READ COMMITTED").begin():
            connection.exec_driver_sql(f"LOCK TABLE {found['table']} IN SHARE UPDATE EXCLUSIVE MODE")
        connection.execution_options(isolation_level="AUTOCOMMIT")
        found = fetch_one(connection, FIND, {"name": f"rowcall.{name}"})
    return bool(found["valid"]) if found else None
