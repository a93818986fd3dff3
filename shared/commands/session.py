"""A command's one transaction, and who gave the command."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager

from shared import settings
from shared.audit import Admin
from shared.database import PgConnection, database_url, transaction
from shared.schema import check_revision


@contextmanager
def command_transaction() -> Iterator[PgConnection]:
    """A transaction on the database of the settings, which must have this code's schema."""
    with database_url(settings.read()) as url, transaction(url) as connection:
        check_revision(connection)
        yield connection


def admin() -> Admin:
    """Who sits at this terminal; a container's user may have only a number."""
    try:
        return Admin(f"cli:{getpass.getuser()}")
    except (KeyError, OSError):
        return Admin(f"cli:{os.getuid()}")
