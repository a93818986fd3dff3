"""The transaction of a command, and the operator who runs it."""

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
    """Open a transaction on the configured database; refuse a schema that does not fit this code."""
    with database_url(settings.read()) as url, internal_transaction(url) as connection:
        check_revision(connection)
        yield connection


def operator() -> Operator:
    """Return the user who runs the command, by number if it has no name, as in some containers."""
    try:
        return Operator(f"cli:{getpass.getuser()}")
    except (KeyError, OSError):
        return Operator(f"cli:{os.getuid()}")
