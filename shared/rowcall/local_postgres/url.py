"""The database of this process: the one of DATABASE_URL, or the local server."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg2.extensions import parse_dsn

from rowcall.base.errors import DatabaseNotSet
from rowcall.base.settings import Settings


@contextmanager
def database_url(settings: Settings, make: bool = False) -> Iterator[str]:
    """Yield the URL to connect to: DATABASE_URL, or that of the local server, which runs as long as this context lasts.

    A database that nobody asked for would surprise anyone who forgot to set DATABASE_URL, so a local server is created
    only where `make` or ROWCALL_POSTGRES says so.
    """
    if settings.database_url:
        yield settings.database_url
        return
    # Loaded only here: where a database is set, there is no server to start.
    from rowcall.local_postgres.home import Home
    from rowcall.local_postgres.server import open_server

    if not (make or settings.postgres or Home(settings.home).data.exists()):
        raise DatabaseNotSet(settings.home.absolute())
    with open_server(settings.home, settings.postgres or "auto", settings.postgres_port) as server:
        # A process that `up` starts writes errors to the terminal of `up`, but nobody types into it.
        if sys.stderr.isatty() and sys.stdin is not None and sys.stdin.isatty() and not make:
            _say_once(f"rowcall: using the local PostgreSQL in {settings.home.absolute()}\n")
        yield server.url


@functools.cache
def _say_once(line: str) -> None:
    """Print a line, unless this process has printed it: a command may need the database several times."""
    sys.stderr.write(line)


def named(url: str) -> str:
    """Name a database as a person knows it, without its password."""
    parts = parse_dsn(url)
    return f"the database {parts.get('dbname', 'of DATABASE_URL')} on {parts.get('host', 'the local socket')}"
