"""The transaction of a command, and the operator who runs it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import psycopg2
from psycopg2.errors import InsufficientPrivilege

from rowcall.access.audit import Operator
from rowcall.base import settings
from rowcall.base.database import PgConnection, drivers_error, internal_transaction
from rowcall.base.errors import RowcallError
from rowcall.base.errors.sentences import one_line
from rowcall.base.outages import is_outage, is_passing
from rowcall.base.redaction import redacted
from rowcall.local_postgres.url import database_url
from rowcall.schema import check_revision

# Longer than users' names usually are.
USER_CHARACTERS = 100


@contextmanager
def command_transaction() -> Iterator[PgConnection]:
    """Open a transaction on the configured database; refuse a schema that does not fit this code."""
    with database_url(settings.read()) as url, internal_transaction(url) as connection:
        check_revision(connection)
        yield connection


@contextmanager
def held_server() -> Iterator[None]:
    """Keep the local server running for a command that opens many transactions; do nothing if DATABASE_URL is set."""
    chosen = settings.read()
    with nullcontext() if chosen.database_url else database_url(chosen):
        yield


@dataclass
class Outage:
    """Why the database was not available; None if it was."""

    reason: str | None = None


@contextmanager
def survived_outage() -> Iterator[Outage]:
    """Continue after the block if the database is not available, for a command that reads repeatedly."""
    outage = Outage()
    try:
        yield outage
    except (RowcallError, psycopg2.Error) as error:
        if not (is_outage(error) or is_passing(error)):
            raise
        outage.reason = f"the database is not available: {one_line(redacted(str(error)))}"


@contextmanager
def needs_rights_of(who: str) -> Iterator[None]:
    """Say whose rights the command needs if this role lacks them."""
    try:
        yield
    except Exception as error:
        cause = drivers_error(error)
        if not isinstance(cause, InsufficientPrivilege):
            raise
        reason = cause.diag.message_primary
        sentence = f"the database refuses this role: {reason}; this command needs the rights of {who}"
        raise RowcallError(sentence) from None


def operator() -> Operator:
    """Return the user who runs the command, as a user ID if there is no name, as in some containers."""
    try:
        # From the environment, so it may be anything.
        name = "".join(letter if letter.isprintable() else "?" for letter in getpass.getuser())[:USER_CHARACTERS]
    except (KeyError, OSError):
        name = str(os.getuid())
    return Operator(f"cli:{name}")
