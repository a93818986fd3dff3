"""Tests create databases and roles, and lock others out; the local server's role may not do that.

They also connect thousands of times, which should be cheap.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from pathlib import Path

from rowcall.base import database
from rowcall.local_postgres import cluster
from rowcall.local_postgres.home import Home
from rowcall.testing.server import superuser_url

# A salt only makes equal passwords look different, and the server of the tests is gone with them.
SALT = b"rowcall's  tests"

IS_SUPERUSER = f"ALTER ROLE {cluster.USER} SUPERUSER PASSWORD %(verifier)s"


def let_do_all(home: Path, url: str) -> str:
    """Make the role of this URL a superuser that authenticates with little work, and return the URL."""
    with database.transaction(superuser_url(home, url)) as connection:
        # Several processes of one session do this at the same time.
        database.fetch_all(connection, "SELECT pg_advisory_xact_lock(2)")
        database.fetch_all(connection, IS_SUPERUSER, {"verifier": _verifier(Home(home).read_password())})
    return url


def _verifier(password: str) -> str:
    """Return what the server stores of a password, as RFC 5803 writes it, for SCRAM with one iteration.

    The usual 4,096 iterations, which make guessing slow, are 40 % of the cost of a connection.
    """
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, iterations=1)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt, stored_key, server_key = (b64encode(part).decode() for part in (SALT, stored, server))
    return f"SCRAM-SHA-256$1:{salt}${stored_key}:{server_key}"
