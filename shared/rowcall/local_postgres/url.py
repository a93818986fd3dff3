"""The database of this process: DATABASE_URL, or the local server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowcall.base.settings import Settings


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    """The URL to connect to: DATABASE_URL, or the local server's, held for as long as this context lasts."""
    if settings.database_url:
        yield settings.database_url
        return
    # Loaded only here: where a database is set, there is no server to start.
    from rowcall.local_postgres.server import open_server

    with open_server(settings.home, settings.postgres, settings.postgres_port) as server:
        yield server.url
