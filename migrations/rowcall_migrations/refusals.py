"""Reasons why a database cannot be migrated, each with its remedy."""

from __future__ import annotations

import sqlalchemy

from rowcall.base.database import Row, fetch_one
from rowcall.base.errors import MigrationRefused
from rowcall.schema.revision import VERSION_TABLE

# Uses only PostgreSQL's catalogue, which every role may read.
FOUND = f"""
SELECT current_user AS role, current_database() AS database,
    current_setting('transaction_read_only') = 'on' AS read_only, current_setting('server_encoding') AS encoding,
    has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
    own.nspname IS NOT NULL AS has_schema, pg_get_userbyid(own.nspowner) AS owner,
    has_schema_privilege(own.oid, 'USAGE') AS may_look, has_schema_privilege(own.oid, 'CREATE') AS may_create_tables,
    (SELECT string_agg(quote_ident(relname), ', ' ORDER BY relname) FROM pg_class
     WHERE relnamespace = own.oid AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relname <> '{VERSION_TABLE}')
        AS holds,
    (SELECT min(oid::regclass::text) FROM pg_class
     WHERE relname = 'rowcall_schema_version' AND relkind = 'r') AS earlier
FROM (SELECT) AS always LEFT JOIN pg_namespace AS own ON own.nspname = 'rowcall'
"""

SCRIPT = "the script that `rowcall migrate --sql` prints"


def look(connection: sqlalchemy.Connection) -> Row:
    """Return the state of the database, and the rights of this role."""
    found = fetch_one(connection, FOUND)
    assert found is not None  # the query always returns one row
    return found


def refuse_unusable(found: Row) -> None:
    """Refuse a database that cannot be migrated, or whose schema this role cannot read."""
    if found["read_only"]:
        raise MigrationRefused(
            f"the database {found['database']} is read-only (a standby, or default_transaction_read_only is on):"
            " set DATABASE_URL to the primary"
        )
    if found["encoding"] != "UTF8":
        raise MigrationRefused(
            f"the database {found['database']} uses the encoding {found['encoding']}, and payloads need UTF8:"
            " create a database with `CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0`"
        )
    if found["has_schema"] and not found["may_look"]:
        raise _not_our_schema(found)


def refuse_to_change(found: Row) -> None:
    """Refuse if this role may not create tables."""
    if not found["has_schema"] and not found["may_create_schema"]:
        role, database = found["role"], found["database"]
        raise MigrationRefused(
            f"{role} may not create a schema in the database {database}: ask the database's owner to run"
            f' `GRANT CREATE ON DATABASE "{database}" TO "{role}"`,'
            f' or `CREATE SCHEMA rowcall AUTHORIZATION "{role}"`, or {SCRIPT}'
        )
    if found["has_schema"] and not found["may_create_tables"]:
        raise _not_our_schema(found)


def refuse_to_begin(found: Row) -> None:
    """Refuse to create the tables alongside those of an earlier Rowcall, or in a schema that others use."""
    earlier = found["earlier"]
    if earlier:
        raise MigrationRefused(
            f"the database {found['database']} contains tables of a Rowcall older than 0.2 ({earlier}), which this"
            " version cannot use; nothing was changed: migrate another database, or remove those tables with"
            f" the Rowcall that made them (`rowcall migrate --to base`, then `DROP TABLE {earlier}`)"
        )
    if found["holds"]:
        raise MigrationRefused(
            f"the schema rowcall belongs to {found['owner']} and contains objects that Rowcall did not create"
            f" ({found['holds']}): rename it (`ALTER SCHEMA rowcall RENAME TO ...`), or migrate another database"
        )


def _not_our_schema(found: Row) -> MigrationRefused:
    role, owner = found["role"], found["owner"]
    return MigrationRefused(
        f"the schema rowcall belongs to {owner}, and {role} may not create tables in it: ask {owner} to run"
        f' `GRANT USAGE, CREATE ON SCHEMA rowcall TO "{role}"`, or {SCRIPT};'
        f" if Rowcall's tables exist already, {role} only needs one of the roles of `rowcall migrate --grants`"
    )
