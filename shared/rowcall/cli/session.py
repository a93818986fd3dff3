"""A command's transaction and operator."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rowcall.access.audit import Operator
from rowcall.base import settings
from rowcall.base.database import PgConnection, internal_transaction
from rowcall.local_postgres.url import database_url
from rowcall.schema import check_revision


@contextmanager
def command_transaction() -> Iterator[PgConnection]:
    """A transaction on the database of the settings, which must have this code's schema."""
    with database_url(settings.read()) as url, internal_transaction(url) as connection:
        check_revision(connection)
        yield connection


def operator() -> Operator:
    """The user at this terminal; a container's user may have only a number."""
    try:
        return Operator(f"cli:{getpass.getuser()}")
    except (KeyError, OSError):
        return Operator(f"cli:{os.getuid()}")
