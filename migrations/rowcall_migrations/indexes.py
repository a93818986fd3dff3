"""Indexes that are built CONCURRENTLY: outside transactions, and again after an interrupted build."""

from __future__ import annotations

import time
from collections.abc import Mapping

import sqlalchemy
from sqlalchemy.exc import DBAPIError

from rowcall.base.database import Row, fetch_all, fetch_one
from rowcall.base.errors import MigrationRefused

# One more try repairs an interrupted build; this many failures have another cause.
TRIES = 3

FIND = """
SELECT pg_index.indisvalid AS valid, format('%%I.%%I', nspname, relname) AS table
FROM pg_index JOIN pg_class ON pg_class.oid = indrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE indexrelid = to_regclass(%(name)s)
"""

# A build releases its lock on the table before it commits the valid index.
BUILDERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
    AND query LIKE '%%CREATE INDEX CONCURRENTLY%%' || %(name)s || '%%'
"""

COMMIT_STEP_SECONDS = 0.05


def bring(pool: sqlalchemy.Engine, wanted: Mapping[str, str | None]) -> tuple[str, ...]:
    """Build or drop indexes as needed; return the names of those changed."""
    return tuple(name for name, statement in wanted.items() if _brought(pool, name, statement))


def _brought(pool: sqlalchemy.Engine, name: str, statement: str | None) -> bool:
    try:
        if statement is None:
            return _dropped(pool, name)
        return _built(pool, name, statement)
    except DBAPIError as error:
        raise MigrationRefused(
            f"the index rowcall.{name} was not built: {' '.join(str(error.orig).split())}; the tables are migrated:"
            " fix the cause, and run `rowcall migrate` again as the tables' owner to build it (without a time limit:"
            " `PGOPTIONS='-c statement_timeout=0'`)"
        ) from None


def _dropped(pool: sqlalchemy.Engine, name: str) -> bool:
    there = _valid(pool, name) is not None
    if there:
        _alone(pool, f"DROP INDEX CONCURRENTLY IF EXISTS rowcall.{name}")
    return there


def _built(pool: sqlalchemy.Engine, name: str, statement: str) -> bool:
    """Build the index unless it is valid.  The remains of an interrupted build are dropped first."""
    for built in range(TRIES):
        valid = _valid(pool, name)
        if valid:
            return built > 0
        if valid is False:
            _alone(pool, f"DROP INDEX CONCURRENTLY IF EXISTS rowcall.{name}")
        _alone(pool, statement)
    return True


def _valid(pool: sqlalchemy.Engine, name: str) -> bool | None:
    """Return whether the index is valid, or None if it does not exist.

    If a migrator was killed, the server still finishes its build.  Wait for the build, so that its index is not
    mistaken for an abandoned one: first for its lock on the table, then for the commit that follows a moment later.
    """
    found = _find(pool, name)
    if found and not found["valid"]:
        _alone(pool, f"LOCK TABLE {found['table']} IN SHARE UPDATE EXCLUSIVE MODE", isolation_level="READ COMMITTED")
        while _is_being_built(pool, name):
            time.sleep(COMMIT_STEP_SECONDS)  # poll: no lock is held until that commit, so there is no lock to wait for
        found = _find(pool, name)
    return bool(found["valid"]) if found else None


def _is_being_built(pool: sqlalchemy.Engine, name: str) -> bool:
    with pool.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        return bool(fetch_all(connection, BUILDERS, {"name": name}))


def _find(pool: sqlalchemy.Engine, name: str) -> Row | None:
    with pool.connect() as connection:
        return fetch_one(connection, FIND, {"name": f"rowcall.{name}"})


def _alone(pool: sqlalchemy.Engine, statement: str, isolation_level: str = "AUTOCOMMIT") -> None:
    with pool.connect().execution_options(isolation_level=isolation_level) as connection:
        connection.exec_driver_sql(statement)
