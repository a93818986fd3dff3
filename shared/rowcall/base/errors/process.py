"""Errors that stop a program: settings, the database, declarations."""

from __future__ import annotations

import threading


class RowcallError(Exception):
    """An error that users see as one sentence, without a traceback."""

    exit_code = 1


def message_of(error: BaseException) -> str:
    """An error's message; an app's own error class may raise another error in __str__."""
    try:
        return str.__str__(str(error))
    except BaseException:
        return "(its message cannot be read)"


def raise_if_interrupted(error: BaseException) -> None:
    """Re-raise Ctrl-C in the main thread, where it is meant for the process."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error


class SettingsError(RowcallError):
    """One or more environment variables hold a value that Rowcall cannot use."""

    exit_code = 2


class DatabaseNotSet(RowcallError):
    """No database is named, and there is no local server to fall back on."""

    exit_code = 3

    def __init__(self, home: object) -> None:
        super().__init__(
            f"DATABASE_URL is not set, and there is no local server in {home}: set DATABASE_URL to your PostgreSQL,"
            " such as postgresql://me@localhost/shop, or make a local server with `rowcall up`"
        )


class DatabaseUnreachable(RowcallError):
    """No connection could be made, or the connection that was there is gone.

    The message may name host, port and user, so the API logs it and does not send it.
    """

    exit_code = 3


class DatabaseUnavailable(DatabaseUnreachable):
    """The server answers and cannot do this now; the message is fit for callers of the API."""


class CommitUnconfirmed(DatabaseUnreachable):
    """A commit may be lost with the primary: the wait for the synchronous standby was cancelled."""

    def __init__(self, notices: str) -> None:
        super().__init__(
            "the commit is not confirmed: it may be lost if the database fails over now; repeat it, with the same"
            f" idempotency key where it has one, which makes that harmless (the database says: {notices})"
        )


class LocalPostgresError(DatabaseUnreachable):
    """The local PostgreSQL could not be found, made, started or stopped."""


class PortInUse(RowcallError):
    """A port that was asked for by number is taken."""


class SchemaMismatch(RowcallError):
    """The database's schema is not the one this code was written for."""


class MigrationRefused(RowcallError):
    """The database is not one that can be migrated, or not by this role."""


class NotAConnection(RowcallError, TypeError):
    """The object passed as a connection is not a supported PostgreSQL connection."""

    def __init__(self, wrong: str, advice: str) -> None:
        super().__init__(
            "`connection` must be a connection of psycopg2 or psycopg, or SQLAlchemy's connection, session or"
            f" scoped_session; this is {wrong}: {advice}"
        )


class DeclarationError(RowcallError):
    """A job type or a handler is declared wrongly; found when the program starts."""
