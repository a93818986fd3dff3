"""Distinguishes a database that cannot be used now from a statement that is wrong.

PostgreSQL's error codes show the difference.  psycopg2's classes do not: a read-only database raises InternalError, and
a value that is too large raises OperationalError.
"""

from __future__ import annotations

import psycopg2

from rowcall.base.errors import DatabaseUnreachable

# Prefixes of error codes: failed connections (08), insufficient disk, memory or connections (53), shutdown and startup
# (57P), a read-only server (25006), an idle transaction that the server ended (25P03), system errors such as I/O (58).
SHORTAGE = "53"
OUTAGES = ("08", SHORTAGE, "57P", "25006", "25P03", "58")

READ_ONLY_REMEDY = "connect to the primary (target_session_attrs=read-write), or make the server writable"

LOCKED = (
    "another transaction holds a needed lock: try again in a moment;"
    " `select pid, xact_start, query from pg_stat_activity order by xact_start` in psql shows the oldest transactions"
)

# Errors after which the same connection can try again at once: a deadlock, a lock timeout, a cancelled statement.
PASSING = ("40", "55P03", "57014")


def is_outage(error: Exception) -> bool:
    """Return whether the database is gone, starting, stopping, read-only or full, so that waiting helps."""
    if isinstance(error, DatabaseUnreachable | psycopg2.InterfaceError):
        return True
    if not isinstance(error, psycopg2.Error):
        return False
    if error.pgcode is None:
        # The driver raised this itself: the connection broke while it was sending or reading.
        return isinstance(error, psycopg2.OperationalError) or type(error) is psycopg2.DatabaseError
    return error.pgcode.startswith(OUTAGES)


# While a connection is opened, the driver gives no error code, only libpq's text: a server that refuses the
# connection says FATAL, and PostgreSQL or PgBouncer adds one of these phrases if it will soon accept connections.
SOON = ("starting up", "shutting down", "recovery", "not accepting connections", "cannot connect", "connect failed")


def can_be_tried_again(error: Exception) -> bool:
    """Return whether a connection that was refused or dropped may work soon.

    A wrong password, role, database or option stays wrong, and a server that is read-only or full needs its operator.
    """
    if isinstance(error, DatabaseUnreachable):
        text = str(error)
        opened = isinstance(error.__context__, psycopg2.OperationalError)
        return opened and ("FATAL:" not in text or any(word in text for word in SOON))
    return is_outage(error) and (getattr(error, "pgcode", None) or "08").startswith(("08", "57P"))


def is_passing(error: Exception) -> bool:
    """Return whether the error is transient, so that repeating the statement helps."""
    return isinstance(error, psycopg2.Error) and (error.pgcode or "").startswith(PASSING)
