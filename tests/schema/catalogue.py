"""The contents of a database, as PostgreSQL itself describes them."""

from __future__ import annotations

from typing import Any

from rowcall.base import database
from rowcall.schema.revision import VERSION_TABLE

# Everything that defines a table.
CATALOGUE = """
SELECT 'column' AS kind, c.relname || '.' || a.attname AS name,
    concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
        pg_get_expr(d.adbin, d.adrelid)) AS definition
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = to_regnamespace('rowcall') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = to_regnamespace('rowcall') AND contype <> 'n'
UNION ALL
SELECT 'index', c.relname, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = to_regnamespace('rowcall')
UNION ALL
SELECT 'options', relname, (SELECT string_agg(option, ',' ORDER BY option) FROM unnest(reloptions) AS option)
FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = to_regnamespace('rowcall')
"""

# Everything in a schema that has a name.
OBJECTS = """
SELECT relname AS name FROM pg_class WHERE relnamespace = %(schema)s::regnamespace
UNION SELECT proname FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
UNION SELECT typname FROM pg_type WHERE typnamespace = %(schema)s::regnamespace
UNION SELECT oprname FROM pg_operator WHERE oprnamespace = %(schema)s::regnamespace
UNION SELECT conname FROM pg_constraint WHERE connamespace = %(schema)s::regnamespace
"""


def catalogue(url: str) -> set[tuple[str, str, str | None]]:
    """Return Rowcall's tables, except alembic's."""
    rows = asked(url, CATALOGUE)
    return {(row["kind"], row["name"], row["definition"]) for row in rows if VERSION_TABLE not in row["name"]}


def objects(url: str, schema: str) -> set[str]:
    """Return the names of the objects in a schema."""
    return {row["name"] for row in asked(url, OBJECTS, schema=schema)}


def asked(url: str, sql: str, **parameters: Any) -> list[dict[str, Any]]:
    """Run one statement in its own transaction."""
    with database.transaction(url) as connection:
        return database.fetch_all(connection, sql, parameters)


def digest(url: str, schema: str) -> dict[str, str]:
    """Return table -> digest of its rows, for all tables in a schema."""
    tables = asked(url, "SELECT tablename AS name FROM pg_tables WHERE schemaname = %(schema)s", schema=schema)
    return {
        row["name"]: asked(
            url, f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) AS rows FROM {schema}.{row['name']} t"
        )[0]["rows"]
        for row in tables
    }
