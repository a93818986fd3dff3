"""A command's one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shared import settings
from shared.database import PgConnection, database_url, transaction
from shared.schema import check_revision


@contextmanager
def command_transaction() -> Iterator[PgConnection]:
    """A transaction on the database of the settings, which must have this code's schema."""
    with database_url(settings.read()) as url, transaction(url) as connection:
        check_revision(connection)
        yield connection
