"""Errors that stop a program: settings, the database, declarations."""

from __future__ import annotations

import threading


class RowcallError(Exception):
    """An error that is shown to users as one sentence, without a traceback."""

    exit_code = 1


def message_of(error: BaseException) -> str:
    """Return the error's message; an app's error class may raise another error in __str__."""
    try:
        return str.__str__(str(error))
    except BaseException:
        return "(its message cannot be read)"


def raise_if_interrupted(error: BaseException) -> None:
    """Re-raise Ctrl-C in the main thread, because there it is meant for the process."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error


class SettingsError(RowcallError):
    """One or more environment variables have invalid values."""

    exit_code = 2


class DatabaseNotSet(RowcallError):
    """No database is named, and there is no local server to fall back on."""

    exit_code = 3

    def __init__(self, home: object) -> None:
        super().__init__(
            f"DATABASE_URL is not set, and there is no local server in {home}: set DATABASE_URL to your PostgreSQL,"
            " such as postgresql://me@localhost/shop, or create a local server with `rowcall up`"
        )


class DatabaseUnreachable(RowcallError):
    """A connection could not be opened, or was lost.

    The message may contain host, port and user, so the API logs it and does not send it.
    """

    exit_code = 3


class DatabaseUnavailable(DatabaseUnreachable):
    """The server answers, but cannot do this now; the API may send the message to callers."""


class CommitUnconfirmed(DatabaseUnreachable):
    """A commit may be lost with the primary: the wait for the synchronous standby was cancelled."""

    def __init__(self, notices: str) -> None:
        super().__init__(
            "the commit is not confirmed: it may be lost if the database fails over now; repeat the request, with the"
            f" same idempotency key if it has one, so that it is not done twice (the database says: {notices})"
        )


class LocalPostgresError(DatabaseUnreachable):
    """The local PostgreSQL could not be found, created, started or stopped."""


class PortInUse(RowcallError):
    """The requested port is in use."""


class SchemaMismatch(RowcallError):
    """The database's schema does not fit this version of the code."""


class RightsMissing(RowcallError):
    """The database does not allow the role of this process to run a statement of Rowcall."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the database refuses the role of the API: {reason}; ask the owner of the tables to run the script that"
            " `rowcall migrate --grants` prints, and to run it again after each migration"
        )


class MigrationRefused(RowcallError):
    """The database cannot be migrated, or not by this role."""


class NotAConnection(RowcallError, TypeError):
    """The object passed as a connection is not a supported PostgreSQL connection."""

    def __init__(self, wrong: str, advice: str) -> None:
        super().__init__(
            "`connection` must be a connection of psycopg2 or psycopg, or SQLAlchemy's connection, session or"
            f" scoped_session; this is {wrong}: {advice}"
        )


class DeclarationError(RowcallError):
    """An app declares something wrongly, such as a job type; raised when the program starts, or at the first use."""
