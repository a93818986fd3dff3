"""API keys: `rc_<prefix>_<secret>`, of which only the prefix and a hash of the secret are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rowcall.access.audit import Operator, record
from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one
from rowcall.base.errors import RowcallError

SCOPES = ("enqueue", "read", "operate", "admin")

NAME_CHARACTERS = 100

# Only this form is looked up: PostgreSQL might not accept other text.
KEY = re.compile(r"rc_([0-9a-f]{8})_([0-9a-f]{64})")

# A secret with an unknown prefix is compared with this.
NO_HASH = bytes(32)

# Near the year 10000 Python could not read it back in another zone.
LAST_YEAR = 9998

CREATE = """
INSERT INTO rowcall.api_keys (name, prefix, secret_sha256, scopes, expires_at)
VALUES (%(name)s, %(prefix)s, %(secret_sha256)s, %(scopes)s, %(expires_at)s)
RETURNING id, name, prefix, scopes, expires_at, coalesce(expires_at <= now(), false) AS ended
"""

FIND = """
SELECT id, name, secret_sha256, scopes, coalesce(last_used_at < now() - interval '1 minute', true) AS unnoted
FROM rowcall.api_keys
WHERE prefix = %(prefix)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""

# It waits neither for a locked row, nor for a table that is being altered, nor for the disk.  If the row is locked,
# another request is writing the same.
NOTE_USE = """
SET LOCAL lock_timeout = '10ms';
SET LOCAL synchronous_commit = off;
UPDATE rowcall.api_keys SET last_used_at = now()
WHERE id = (
    SELECT id FROM rowcall.api_keys
    WHERE id = %(key_id)s AND coalesce(last_used_at < now() - interval '1 minute', true)
    FOR UPDATE SKIP LOCKED
)
"""

_STATE = """
CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
    WHEN expires_at <= now() THEN 'expired'
    WHEN expires_at IS NOT NULL THEN 'expires'
    ELSE 'active' END AS state
"""

LIST = f"""
SELECT id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at, {_STATE}
FROM rowcall.api_keys ORDER BY id
"""

# A rotated key is valid for as long as the one that it replaces was.
LOCK = f"""
SELECT name, scopes, expires_at, revoked_at, now() + (expires_at - created_at) AS next_expires_at, {_STATE}
FROM rowcall.api_keys WHERE id = %(key_id)s FOR UPDATE
"""

REVOKE = "UPDATE rowcall.api_keys SET revoked_at = now() WHERE id = %(key_id)s RETURNING revoked_at"

# A key that expires sooner keeps its expiry; least() ignores NULL.
END = """
UPDATE rowcall.api_keys SET expires_at = least(expires_at, now() + %(grace)s) WHERE id = %(key_id)s RETURNING expires_at
"""


@dataclass(frozen=True)
class Caller:
    """The owner of a key, and its scopes; `unnoted` if its last use was not recorded for a minute."""

    key_id: int
    name: str
    scopes: frozenset[str]
    unnoted: bool


@dataclass(frozen=True)
class Rotated:
    """The new key; the old one is valid until `old_ends_at`."""

    key: str
    expires_at: datetime | None
    old_ends_at: datetime


def create_key(
    connection: Connection, name: str, scopes: Sequence[str], operator: Operator, expires_at: datetime | None = None
) -> str:
    """Create a key and return it; it cannot be read again."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise RowcallError(f"scopes are {', '.join(SCOPES)}, one or more; not {', '.join(unknown) or 'none'}")
    if not 0 < len(name) <= NAME_CHARACTERS or not name.isprintable() or name != name.strip():
        raise RowcallError(
            f"a key's name is 1 to {NAME_CHARACTERS} printable characters, such as billing; {name[:40]!r} is not"
        )
    if expires_at is not None and expires_at.year > LAST_YEAR:
        raise RowcallError(f"a key can expire up to the year {LAST_YEAR}, not in {expires_at.year}")
    # 256 random bits: a fast hash is as good as a slow one, because there is nothing to guess.
    prefix, secret = secrets.token_hex(4), secrets.token_hex(32)
    values = {"name": name, "prefix": prefix, "scopes": list(scopes), "expires_at": expires_at}
    created = fetch_one(connection, CREATE, {**values, "secret_sha256": _hashed(secret)})
    assert created is not None, "an INSERT without a condition returns its row"
    if created["ended"]:
        raise RowcallError(f"a key must expire later than now; {created['expires_at'].isoformat()} is past")
    record(connection, operator.who, "create", "key", created["id"], None, values, operator.request_id)
    return f"rc_{prefix}_{secret}"


def find_caller(connection: Connection, key: str) -> Caller | None:
    """The owner of this key; None if it is unknown, expired or revoked.

    The secret is compared even if no key has the prefix, so that the time does not reveal which prefixes exist.
    """
    match = KEY.fullmatch(key)
    if match is None:
        return None
    prefix, secret = match.groups()
    row = fetch_one(connection, FIND, {"prefix": prefix})
    same = hmac.compare_digest(_hashed(secret), bytes(row["secret_sha256"]) if row else NO_HASH)
    return Caller(row["id"], row["name"], frozenset(row["scopes"]), row["unnoted"]) if row and same else None


def note_use(connection: Connection, key_id: int) -> None:
    """Record the use of a key, at most once a minute, in a transaction of its own."""
    fetch_all(connection, NOTE_USE, {"key_id": key_id})


def list_keys(connection: Connection) -> list[Row]:
    """All keys that were ever created, without their secrets; `state` is active, expires, expired or revoked."""
    return fetch_all(connection, LIST)


def revoke_key(connection: Connection, key_id: int, operator: Operator) -> None:
    """End a key at once."""
    before = _locked(connection, key_id, ended=("revoked",))
    after = fetch_one(connection, REVOKE, {"key_id": key_id})
    record(
        connection,
        operator.who,
        "revoke",
        "key",
        key_id,
        {"revoked_at": before["revoked_at"]},
        after,
        operator.request_id,
    )


def rotate_key(connection: Connection, key_id: int, grace: timedelta, operator: Operator) -> Rotated:
    """Replace a key by a new one with the same lifetime; the old one stays valid for the grace."""
    old = _locked(connection, key_id, ended=("revoked", "expired"))
    key = create_key(connection, old["name"], old["scopes"], operator, old["next_expires_at"])
    after = fetch_one(connection, END, {"key_id": key_id, "grace": grace})
    assert after is not None, "its row is locked"
    before = {"expires_at": old["expires_at"]}
    replaced = {**after, "replaced_by": key.split("_")[1]}
    record(connection, operator.who, "rotate", "key", key_id, before, replaced, operator.request_id)
    return Rotated(key, old["next_expires_at"], after["expires_at"])


def _locked(connection: Connection, key_id: int, ended: Sequence[str]) -> Row:
    """The key, locked until the caller's transaction ends."""
    row = fetch_one(connection, LOCK, {"key_id": key_id}) if 0 < key_id <= LARGEST_ID else None
    if row is None:
        raise RowcallError(f"no key has the id {key_id}; `rowcall keys list` shows all")
    if row["state"] in ended:
        raise RowcallError(f"key {key_id} is {row['state']} already; `rowcall keys create` makes another")
    return row


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
