"""The schema revision that this code needs, whether a database has it, and whether it can be read."""

from __future__ import annotations

from typing import NamedTuple

import psycopg2.errors
from psycopg2.errorcodes import INVALID_SCHEMA_NAME, UNDEFINED_COLUMN, UNDEFINED_FUNCTION, UNDEFINED_TABLE

from rowcall.base.database import Connection, drivers_error, fetch_all, fetch_one, fetch_value, sqlstate_of
from rowcall.base.errors import SchemaMismatch

# The newest file in rowcall_migrations/versions; a test keeps them equal.
REVISION = "0002"

# In Rowcall's own schema, where an app's alembic does not look.
VERSION_TABLE = "schema_version"

SCHEMA = f"SELECT version_num AS revision, coalesce(fits, version_num) AS fits FROM rowcall.{VERSION_TABLE}"


# What the database reports if the schema has been removed, or migrated back, while this process runs.
SCHEMA_STATES = (UNDEFINED_TABLE, UNDEFINED_COLUMN, UNDEFINED_FUNCTION, INVALID_SCHEMA_NAME)
SCHEMA_ERRORS = tuple(psycopg2.errors.lookup(state) for state in SCHEMA_STATES)


class Schema(NamedTuple):
    """The schema of a database: its revision, and the oldest revision whose code still works with it."""

    revision: str
    fits: str


def schema_of(connection: Connection) -> Schema | None:
    """Return the schema of the database; None if it was never migrated."""
    try:
        if not fetch_value(connection, f"SELECT to_regclass('rowcall.{VERSION_TABLE}') IS NOT NULL"):
            return None
        row = fetch_one(connection, SCHEMA)
    except Exception as error:
        if isinstance(drivers_error(error), psycopg2.errors.UndefinedColumn):
            raise SchemaMismatch(
                f"rowcall.{VERSION_TABLE} is not Rowcall's: rename that schema (`ALTER SCHEMA rowcall RENAME TO ...`),"
                " or use another database"
            ) from None
        if not isinstance(drivers_error(error), psycopg2.errors.InsufficientPrivilege):
            raise
        raise SchemaMismatch(
            "this role may not read the schema rowcall: ask the owner of its tables to run the script that"
            " `rowcall migrate --grants` prints, and grant one of the script's roles to this role"
        ) from None
    return Schema(**row) if row else None


def mismatch(found: Schema | None) -> str | None:
    """Return why this code cannot work with this schema, and what to do; None if it can."""
    if found is None:
        return f"the database has no Rowcall schema (needed: {REVISION}): run `rowcall migrate`"
    if found.revision < REVISION:
        older = f"the database's schema is {found.revision}, older than this code needs ({REVISION})"
        return f"{older}: run `rowcall migrate`"
    if found.fits > REVISION:
        return (
            f"the database's schema is {found.revision}, too new for this code ({REVISION}); the oldest code that fits"
            f" is that of {found.fits}: deploy the newer Rowcall here, or migrate back with it"
        )
    return None


def mismatch_behind(error: Exception) -> SchemaMismatch | None:
    """Return what to raise for an error of either driver if the schema is its reason; None for any other error."""
    if sqlstate_of(error) not in SCHEMA_STATES:
        return None
    reason = getattr(getattr(drivers_error(error), "diag", None), "message_primary", None)
    return SchemaMismatch(
        f"the database does not have the Rowcall schema that this code needs ({REVISION}): {reason}; run `rowcall"
        " migrate`, with the DATABASE_URL of this database"
    )


def check_revision(connection: Connection) -> None:
    """Raise SchemaMismatch if this code cannot work with the database's schema."""
    problem = mismatch(schema_of(connection))
    if problem:
        raise SchemaMismatch(problem)


# Reads no row, with a role's rights and with a lock.  A standby keeps the leader's exclusive locks while its replay is
# paused.
READ = """SET LOCAL lock_timeout = '100ms';
SELECT run.payload, kept.payload FROM rowcall.job_runs AS run, ONLY rowcall.archived_runs AS kept LIMIT 0
"""


def check_readable(connection: Connection) -> None:
    """Raise the database's error if lists cannot be read, because a right is missing or a table is locked."""
    fetch_all(connection, READ)
