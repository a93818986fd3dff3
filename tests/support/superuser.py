"""Tests create databases and roles, and lock others out; the local server's role may not do that."""

from __future__ import annotations

from pathlib import Path

from rowcall.base import database
from rowcall.local_postgres import cluster
from rowcall.testing.server import superuser_url


def let_do_all(home: Path, url: str) -> str:
    """Make the role of this URL a superuser, and return the URL."""
    with database.transaction(superuser_url(home, url)) as connection:
        # Several processes of one session do this at the same time.
        database.fetch_all(connection, "SELECT pg_advisory_xact_lock(2)")
        database.fetch_all(connection, f"ALTER ROLE {cluster.USER} SUPERUSER")
    return url
