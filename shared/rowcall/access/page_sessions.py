"""Sessions on the operator's page: a cookie stands for an API key.  Only a hash of each token is stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta

from rowcall.access.audit import record
from rowcall.access.caller import Caller, caller_of
from rowcall.base.database import Connection, fetch_all, fetch_one

# A working day: operators sign in again the next morning.
SESSION = timedelta(hours=12)

# Long enough to start a browser.
LINK = timedelta(minutes=10)

# Prefix of the token of a session that was begun over an encrypted connection.  The hash covers the prefix, so a token
# that was read on a plain connection cannot be turned into such a token.
ENCRYPTED = "tls."

# Only this form is looked up.
TOKEN = re.compile(r"(tls\.)?[A-Za-z0-9_-]{16,43}")

# A link's token is shorter, so that the link fits on a line of a narrow terminal: it works only once, and not for long.
SESSION_BYTES, LINK_BYTES = 32, 12

BEGIN = """
WITH expired AS (DELETE FROM rowcall.page_sessions WHERE expires_at <= now())
INSERT INTO rowcall.page_sessions (token_sha256, key_id, is_link, expires_at)
VALUES (%(token)s, %(key_id)s, %(is_link)s, now() + %(lifetime)s)
"""

# A session ends with its key: if that is revoked, expires, or loses a scope, so does the session.
FIND = """
SELECT key.id, key.name, key.prefix, key.scopes, key.job_types, key.queues, key.expires_at,
    coalesce(key.last_used_at < now() - interval '1 minute', true) AS unnoted
FROM rowcall.page_sessions AS session JOIN rowcall.api_keys AS key ON key.id = session.key_id
WHERE session.token_sha256 = %(token)s AND NOT session.is_link AND session.expires_at > now()
    AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > now())
"""

FOLLOW = """
DELETE FROM rowcall.page_sessions WHERE token_sha256 = %(token)s AND is_link AND expires_at > now() RETURNING key_id
"""

# Whether a link can still begin a session; a part of another statement.
LINK_WORKS = """EXISTS (
    SELECT FROM rowcall.page_sessions WHERE token_sha256 = %(link)s AND is_link AND expires_at > now()
)"""

END = "DELETE FROM rowcall.page_sessions WHERE token_sha256 = %(token)s"


def begin_session(
    connection: Connection, caller: Caller, request_id: str | None = None, is_encrypted: bool = False
) -> str:
    """Begin a session with the rights of this caller's key, and return its token."""
    record(connection, caller.who, "sign in", "key", caller.key_id, None, None, request_id)
    return _session(connection, caller.key_id, is_encrypted)


def make_link(connection: Connection, key_id: int) -> str:
    """Return the token of a link that begins one session, once and within a short time."""
    return _begin(connection, key_id, secrets.token_urlsafe(LINK_BYTES), is_link=True, lifetime=LINK)


def follow_link(
    connection: Connection, token: str, request_id: str | None = None, is_encrypted: bool = False
) -> str | None:
    """Begin a session with the token of a link, and return its token; None if the link was used or is too old."""
    found = fetch_one(connection, FOLLOW, {"token": hashed(token)}) if TOKEN.fullmatch(token) else None
    if found is None:
        return None
    session = _session(connection, found["key_id"], is_encrypted)
    caller = find_session(connection, session, is_encrypted)
    if caller is not None:
        record(connection, caller.who, "sign in", "key", caller.key_id, None, None, request_id)
    return session


def find_session(connection: Connection, token: str, is_encrypted: bool = False) -> Caller | None:
    """Return the owner of the session's key; None if the session or the key is no longer valid.

    A session that was begun over TLS is valid only over TLS, and the other way round.
    """
    is_like_it = token.startswith(ENCRYPTED) is is_encrypted
    row = fetch_one(connection, FIND, {"token": hashed(token)}) if is_like_it and TOKEN.fullmatch(token) else None
    return None if row is None else caller_of(row)


def end_session(connection: Connection, token: str) -> None:
    """End a session."""
    fetch_all(connection, END, {"token": hashed(token)})


def _session(connection: Connection, key_id: int, is_encrypted: bool) -> str:
    token = (ENCRYPTED if is_encrypted else "") + secrets.token_urlsafe(SESSION_BYTES)
    return _begin(connection, key_id, token, is_link=False, lifetime=SESSION)


def _begin(connection: Connection, key_id: int, token: str, is_link: bool, lifetime: timedelta) -> str:
    values = {"token": hashed(token), "key_id": key_id, "is_link": is_link, "lifetime": lifetime}
    fetch_all(connection, BEGIN, values)
    return token


def hashed(token: str) -> bytes:
    """Return the hash that is stored; a fast one is enough, because the tokens are random."""
    return hashlib.sha256(token.encode()).digest()
