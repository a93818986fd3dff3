"""API keys: `rc_<prefix>_<secret>`, of which only the prefix and a hash of the secret are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from shared.database import Connection, Row, fetch_all, fetch_one
from shared.errors import RowcallError

SCOPES = ("enqueue", "read", "operate", "admin")

CREATE = """
INSERT INTO api_keys (name, prefix, secret_sha256, scopes)
VALUES (%(name)s, %(prefix)s, %(secret_sha256)s, %(scopes)s)
RETURNING id
"""

FIND = """
SELECT id, name, secret_sha256, scopes FROM api_keys
WHERE prefix = %(prefix)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""

LIST = """
SELECT id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at FROM api_keys ORDER BY id
"""

REVOKE = """
UPDATE api_keys SET revoked_at = now() WHERE id = %(key_id)s AND revoked_at IS NULL RETURNING id
"""


@dataclass(frozen=True)
class Caller:
    """Who a key speaks for, and what it may do."""

    name: str
    scopes: frozenset[str]


def create_key(connection: Connection, name: str, scopes: Sequence[str]) -> str:
    """Make a key and return it; this is the only time it can be read."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise RowcallError(f"scopes are {', '.join(SCOPES)}, one or more; not {', '.join(unknown) or 'none'}")
    # 256 random bits: a fast hash is as good as a slow one, because there is nothing to guess.
    prefix, secret = secrets.token_hex(4), secrets.token_hex(32)
    fetch_all(
        connection,
        CREATE,
        {"name": name, "prefix": prefix, "secret_sha256": _hashed(secret), "scopes": list(scopes)},
    )
    return f"rc_{prefix}_{secret}"


def find_caller(connection: Connection, key: str) -> Caller | None:
    """Who this key speaks for; None when it is none, expired, or revoked."""
    name, _, rest = key.partition("_")
    prefix, _, secret = rest.partition("_")
    # Only what a key can look like is looked up: anything else might be text that PostgreSQL cannot take.
    if name != "rc" or not prefix.isalnum() or not prefix.isascii() or not secret.isascii():
        return None
    row = fetch_one(connection, FIND, {"prefix": prefix})
    if row is None or not hmac.compare_digest(_hashed(secret), bytes(row["secret_sha256"])):
        return None
    return Caller(row["name"], frozenset(row["scopes"]))


def list_keys(connection: Connection) -> list[Row]:
    """All keys that were ever made, without their secrets."""
    return fetch_all(connection, LIST)


def revoke_key(connection: Connection, key_id: int) -> None:
    """End a key at once."""
    if not fetch_all(connection, REVOKE, {"key_id": key_id}):
        raise RowcallError(f"there is no key {key_id} that is not revoked yet; `rowcall keys list` shows them")


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
