"""Which schema this code was written for, and whether the database has it."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_value
from rowcall.base.errors import SchemaMismatch

# The newest file in rowcall_migrations/versions; a test holds them equal.
REVISION = "0001"

# In Rowcall's own schema, where a team's alembic does not look.
VERSION_TABLE = "schema_version"


def revision_of(connection: Connection) -> str | None:
    """The database's revision; None where nothing was ever migrated."""
    if fetch_value(connection, f"SELECT to_regclass('rowcall.{VERSION_TABLE}') IS NOT NULL"):
        revision: str | None = fetch_value(connection, f"SELECT max(version_num) FROM rowcall.{VERSION_TABLE}")
        return revision
    return None


def mismatch(found: str | None) -> str | None:
    """What is wrong with a database at this revision, and what to do; None when it fits."""
    if found == REVISION:
        return None
    if found is None:
        return f"the database has no Rowcall schema (needed: {REVISION}): run `rowcall migrate`"
    if found < REVISION:
        return f"the database's schema is {found}, older than this code needs ({REVISION}): run `rowcall migrate`"
    return (
        f"the database's schema is {found}, newer than this code knows ({REVISION}):"
        " deploy the newer Rowcall here, or migrate back with it"
    )


def check_revision(connection: Connection) -> None:
    """Refuse a database whose schema is not this code's."""
    problem = mismatch(revision_of(connection))
    if problem:
        raise SchemaMismatch(problem)
