"""API keys: `rc_<prefix>_<secret>`.  Only the prefix and a hash of the secret are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rowcall.access.audit import Operator, record
from rowcall.access.caller import UNLIMITED, Caller, Limits, caller_of
from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import ApiKeyEnded, ApiKeyInvalid, ApiKeyNameTaken, ApiKeyNotFound
from rowcall.base.prepared import fetch_prepared_row
from rowcall.base.timestamps import in_utc

SCOPES = ("enqueue", "read", "operate", "admin")

# A name of this form cannot imitate another actor in `created_by` and in the audit log.  The table has the same CHECK.
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,98}[A-Za-z0-9])?")

# A job type or a queue.
LIMIT = re.compile(r"[a-z][a-z0-9_]{0,62}")

# Only this form is looked up, because PostgreSQL might not accept other text.
KEY = re.compile(r"rc_([0-9a-f]{8})_([0-9a-f]{64})")

# A secret with an unknown prefix is compared with this.
NO_HASH = bytes(32)

# Python cannot read a time near the year 10000 in another zone.
LAST_YEAR = 9998

CREATE = """
INSERT INTO rowcall.api_keys (name, prefix, secret_sha256, scopes, job_types, queues, expires_at)
VALUES (%(name)s, %(prefix)s, %(secret_sha256)s, %(scopes)s, %(job_types)s::text[], %(queues)s::text[], %(expires_at)s)
ON CONFLICT (name) WHERE revoked_at IS NULL AND replaced_at IS NULL DO NOTHING
RETURNING id, name, prefix, scopes, expires_at, coalesce(expires_at <= clock_timestamp(), false) AS ended
"""

FIND = """
SELECT id, name, prefix, secret_sha256, scopes, job_types, queues, expires_at,
    coalesce(last_used_at < now() - interval '1 minute', true) AS unnoted
FROM rowcall.api_keys
WHERE prefix = %(prefix)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""

# Does not wait for a locked row, for a table that is being altered, or for the disk.  If the row is locked, another
# request is writing the same value.
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

# A new key can take the name of an expired key, but it can take the name of a valid key only with a grace period.
# least() ignores NULL; a key that expires sooner keeps its expiry.
REPLACE = """
WITH old AS (
    SELECT id, expires_at FROM rowcall.api_keys
    WHERE name = %(name)s AND revoked_at IS NULL AND replaced_at IS NULL
        AND (%(grace)s::interval IS NOT NULL OR expires_at <= now())
    FOR UPDATE
)
UPDATE rowcall.api_keys AS key SET replaced_at = now(), expires_at = least(key.expires_at, now() + %(grace)s::interval)
FROM old WHERE key.id = old.id
RETURNING key.id, old.expires_at AS expired_at, key.expires_at
"""

HOLDER = """
SELECT id FROM rowcall.api_keys WHERE name = %(name)s AND revoked_at IS NULL AND replaced_at IS NULL
"""

STATE = """
CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
    WHEN expires_at <= now() THEN 'expired'
    WHEN expires_at IS NOT NULL THEN 'expires'
    ELSE 'active' END AS state
"""

# What is shown of a key: everything except the hash of its secret.
SHOWN = f"""
SELECT id, name, prefix, scopes, job_types, queues, created_at, expires_at, last_used_at, revoked_at, replaced_at,
    {STATE}
FROM rowcall.api_keys"""

LIST = f"{SHOWN} ORDER BY id"

GET = f"{SHOWN} WHERE id = %(key_id)s"

# The new key of a rotation has the lifetime of the old one.
LOCK = f"""
SELECT name, scopes, job_types, queues, expires_at, revoked_at, replaced_at,
    now() + (expires_at - created_at) AS next_expires_at, {STATE}
FROM rowcall.api_keys WHERE id = %(key_id)s FOR UPDATE
"""

REVOKE = "UPDATE rowcall.api_keys SET revoked_at = now() WHERE id = %(key_id)s RETURNING revoked_at"


@dataclass(frozen=True)
class Rotated:
    """The new key; the old one is valid until `old_ends_at`."""

    key: str
    expires_at: datetime | None
    old_ends_at: datetime


def create_key(
    connection: Connection,
    name: str,
    scopes: Sequence[str],
    operator: Operator,
    expires_at: datetime | None = None,
    grace: timedelta | None = None,
    limits: Limits = UNLIMITED,
) -> str:
    """Create a key and return it; it cannot be read again.

    With a grace period, it replaces the key with the same name, which stays valid for that long.
    """
    return _create(connection, name, scopes, operator, expires_at, grace, limits)[0]


def _create(
    connection: Connection,
    name: str,
    scopes: Sequence[str],
    operator: Operator,
    expires_at: datetime | None,
    grace: timedelta | None,
    limits: Limits,
) -> tuple[str, Row | None]:
    """Insert a key; return it, and the row of the key that it replaces."""
    _check(name, scopes, expires_at, limits)
    # A fast hash is enough, because nobody can guess 256 random bits.
    prefix, secret = secrets.token_hex(4), secrets.token_hex(32)
    limited = {what: None if names is None else list(names) for what, names in limits._asdict().items()}
    values = {"name": name, "prefix": prefix, "scopes": list(scopes), **limited, "expires_at": in_utc(expires_at)}
    replaced = fetch_one(connection, REPLACE, {"name": name, "grace": grace})
    created = fetch_one(connection, CREATE, {**values, "secret_sha256": _hashed(secret)})
    if created is None:
        raise ApiKeyNameTaken(name, fetch_value(connection, HOLDER, {"name": name}))
    if created["ended"]:
        ends = created["expires_at"].isoformat()
        raise ApiKeyInvalid("expires_at", f"a key must expire in the future; {ends} is in the past")
    record(connection, operator.who, "create", "key", created["id"], None, values, operator.request_id)
    if replaced is not None:
        before, after = {"expires_at": replaced["expired_at"]}, {"expires_at": replaced["expires_at"]}
        after["replaced_by"] = prefix
        record(connection, operator.who, "rotate", "key", replaced["id"], before, after, operator.request_id)
    return f"rc_{prefix}_{secret}", replaced


def _check(name: str, scopes: Sequence[str], expires_at: datetime | None, limits: Limits) -> None:
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        sentence = f"scopes must be one or more of {', '.join(SCOPES)}, not {', '.join(unknown) or 'none'}"
        raise ApiKeyInvalid("scopes", sentence)
    if not NAME.fullmatch(name):
        raise ApiKeyInvalid(
            "name",
            "a key's name must be 1 to 100 letters, digits, spaces and . _ @ -, with a letter or digit at both ends,"
            f" such as billing, not {name[:40]!r}",
        )
    for field, names in limits._asdict().items():
        for named in names or ():
            if not LIMIT.fullmatch(named):
                sentence = f"a job type or queue must be lower-case words such as send_mail, not {named[:40]!r}"
                raise ApiKeyInvalid(field, sentence)
    if expires_at is not None and expires_at.year > LAST_YEAR:
        sentence = f"a key can expire up to the year {LAST_YEAR}, not in {expires_at.year}"
        raise ApiKeyInvalid("expires_at", sentence)


def find_caller(connection: Connection, key: str) -> Caller | None:
    """Return the owner of this key; None if it is unknown, expired or revoked.

    The secret is compared even if no key has the prefix, so that the response time does not reveal which prefixes
    exist.
    """
    match = KEY.fullmatch(key)
    if match is None:
        return None
    prefix, secret = match.groups()
    row = fetch_prepared_row(connection, FIND, {"prefix": prefix})
    same = hmac.compare_digest(_hashed(secret), bytes(row["secret_sha256"]) if row else NO_HASH)
    if row is None or not same:
        return None
    return caller_of(row)


def id_of(connection: Connection, key: str) -> int:
    """Return the id of a valid key, such as one that was just created."""
    caller = find_caller(connection, key)
    assert caller is not None
    return caller.key_id


def note_use(connection: Connection, key_id: int) -> None:
    """Record the use of a key, at most once a minute, in a separate transaction."""
    fetch_all(connection, NOTE_USE, {"key_id": key_id})


def list_keys(connection: Connection) -> list[Row]:
    """Return all keys that were ever created, without their secrets; `state` is active, expires, expired or revoked."""
    return fetch_all(connection, LIST)


def get_key(connection: Connection, key_id: int) -> Row:
    """Return one key as `list_keys` does, or raise ApiKeyNotFound."""
    row = fetch_one(connection, GET, {"key_id": key_id}) if 0 < key_id <= LARGEST_ID else None
    if row is None:
        raise ApiKeyNotFound(key_id)
    return row


def revoke_key(connection: Connection, key_id: int, operator: Operator) -> None:
    """Revoke a key at once."""
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
    """Replace a key with a new one with the same rights and lifetime; the old one stays valid for the grace period."""
    old = _locked(connection, key_id, ended=("revoked", "expired"))
    if old["replaced_at"]:
        raise ApiKeyEnded(
            f"key {key_id} has already been replaced; `rowcall keys list` shows the key that has its name now"
        )
    limits = Limits(old["job_types"], old["queues"])
    key, replaced = _create(connection, old["name"], old["scopes"], operator, old["next_expires_at"], grace, limits)
    assert replaced is not None, "its row is locked, and has the name"
    return Rotated(key, old["next_expires_at"], replaced["expires_at"])


def _locked(connection: Connection, key_id: int, ended: Sequence[str]) -> Row:
    """Return the key, locked until the caller's transaction ends."""
    row = fetch_one(connection, LOCK, {"key_id": key_id}) if 0 < key_id <= LARGEST_ID else None
    if row is None:
        raise ApiKeyNotFound(key_id)
    if row["state"] in ended:
        raise ApiKeyEnded(f"key {key_id} is already {row['state']}; `rowcall keys create` creates another")
    return row


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
