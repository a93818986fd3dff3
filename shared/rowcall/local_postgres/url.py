"""The database of this process: the one of DATABASE_URL, or the local server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowcall.base.settings import Settings


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    """Yield DATABASE_URL, or the URL of the local server, which runs at least until the end of the block."""
    if settings.database_url:
        yield settings.database_url
        return
    # Imported here, because it is not needed if DATABASE_URL is set.
    from rowcall.local_postgres.server import open_server

    with open_server(settings.home, settings.postgres, settings.postgres_port) as server:
        yield server.url
