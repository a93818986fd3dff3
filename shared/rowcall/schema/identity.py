"""Distinguishes databases without revealing anything about them."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_value

# The response header of `/readyz` that contains the identity.
DATABASE_HEADER = "X-Rowcall-Database"

# The microsecond in which the server started differs between any two servers.  Unlike the system identifier, every role
# may read it, and copies of a server do not share it.  It changes with a restart, so identities must not be stored.
IDENTITY = """
SELECT left(encode(sha256(convert_to('rowcall ' || started || ' ' || current_database(), 'UTF8')), 'hex'), 16)
FROM CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint) AS started
"""


def identity_of(connection: Connection) -> str:
    """Return a hash that is the same for two connections if both are to the same database of a running server."""
    return str(fetch_value(connection, IDENTITY))
