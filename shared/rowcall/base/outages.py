"""Which errors of the database say that it cannot be used just now, and which say that a statement is wrong.

The driver's classes do not tell them apart: a read-only database is an InternalError to it, and a value that is too
large an OperationalError.  PostgreSQL's own codes do.
"""

from __future__ import annotations

import psycopg2

from rowcall.base.errors import DatabaseUnreachable

# The first characters of the codes: connections that fail, what the server is short of (disk, memory, connections), its
# shutdown and start, a read-only server, a transaction that was ended because it idled, the server's disk or the like.
OUTAGES = ("08", "53", "57P", "25006", "25P03", "58")

READ_ONLY_REMEDY = "connect to the primary (target_session_attrs=read-write), or let its operator make it writable"

# What may be tried again at once, on the same connection: a deadlock, a lock that was not free, a cancelled statement.
PASSING = ("40", "55P03", "57014")


def is_outage(error: Exception) -> bool:
    """Whether the database is gone, starting, stopping, read-only or full: wait for it, and try again."""
    if isinstance(error, DatabaseUnreachable | psycopg2.InterfaceError):
        return True
    if not isinstance(error, psycopg2.Error):
        return False
    if error.pgcode is None:
        # The driver's own words: the connection broke while something was sent or read.
        return isinstance(error, psycopg2.OperationalError) or type(error) is psycopg2.DatabaseError
    return error.pgcode.startswith(OUTAGES)


def is_passing(error: Exception) -> bool:
    """Whether the error is transient, so that repeating the statement helps."""
    return isinstance(error, psycopg2.Error) and (error.pgcode or "").startswith(PASSING)
