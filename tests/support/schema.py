"""A database whose schema is another than this code's."""

from __future__ import annotations

from rowcall.base import database
from rowcall.schema.revision import VERSION_TABLE

OLDER = "0000"


def make_older(url: str) -> None:
    """Let the database say that its schema is older than any that this code knows."""
    with database.transaction(url) as connection:
        sql = f"UPDATE rowcall.{VERSION_TABLE} SET version_num = %(older)s"
        database.fetch_all(connection, sql, {"older": OLDER})
