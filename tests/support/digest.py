"""A digest of a whole database, which changes when a row of any table changes."""

from __future__ import annotations

from rowcall.base import database
from rowcall.base.database import PgConnection

TABLES = """
SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('rowcall', 'example') ORDER BY tablename
"""

# Each request updates this column, whatever its outcome.
NOTED_ALWAYS = {"api_keys": "last_used_at"}


class Digest:
    """Takes digests of one database; the connection must not be in a transaction in between."""

    def __init__(self, connection: PgConnection) -> None:
        connection.autocommit = True
        self._connection = connection
        tables = database.fetch_all(connection, TABLES)
        self._sql = " UNION ALL ".join(_rows_of(row["schemaname"], row["tablename"]) for row in tables)

    def __call__(self) -> str:
        """Return a digest of all rows of all tables."""
        found: str = database.fetch_value(
            self._connection, f"SELECT md5(string_agg(digest, ' ' ORDER BY name)) FROM ({self._sql}) AS tables"
        )
        return found


def _rows_of(schema: str, table: str) -> str:
    noted = NOTED_ALWAYS.get(table)
    row = f"(to_jsonb(t) - '{noted}')::text" if noted else "t::text"
    return (
        f"SELECT '{table}' AS name, '{table} ' || md5(coalesce(string_agg({row}, ' ' ORDER BY {row}), '')) AS digest"
        f" FROM {schema}.{table} AS t"
    )
