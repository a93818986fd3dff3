"""Holders: the runs that already have the keys of a request, which is then a replay or a conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rowcall.base.database import Connection, fetch_all
from rowcall.base.errors import KeyConflict, KeyGone, NaturalKeyConflict, RunInvalid
from rowcall.job_types import JobType
from rowcall.job_types.declaration import KEY_CHARACTERS

# A separate statement, because the INSERT's snapshot is older than the run that has the key.  That run may not have
# reached the synchronous standby yet.  A transaction that writes nothing does not wait for the standby at commit; the
# logical message makes it wait.  Each SELECT reads one unique index.  A key of request_keys whose run does not exist is
# free.
FIND_HOLDERS = """
SELECT id, held_key AS natural_key, NULL AS key, content_fingerprint AS fingerprint, false AS is_remembered,
    pg_catalog.pg_logical_emit_message(true, 'rowcall', '') AS replicated
FROM rowcall.job_runs
WHERE job_type OPERATOR(pg_catalog.=) %(job_type)s AND held_key OPERATOR(pg_catalog.=) ANY(%(natural_keys)s::text[])
UNION ALL
SELECT id, NULL, idempotency_key, request_fingerprint, false, pg_catalog.pg_logical_emit_message(true, 'rowcall', '')
FROM rowcall.job_runs
WHERE key_owner OPERATOR(pg_catalog.=) %(key_owner)s AND idempotency_key OPERATOR(pg_catalog.=) ANY(%(keys)s::text[])
UNION ALL
SELECT kept.run_id, NULL, kept.idempotency_key, kept.request_fingerprint, true,
    pg_catalog.pg_logical_emit_message(true, 'rowcall', '')
FROM rowcall.request_keys AS kept JOIN rowcall.job_runs AS run ON run.id OPERATOR(pg_catalog.=) kept.run_id
WHERE kept.key_owner OPERATOR(pg_catalog.=) %(key_owner)s
    AND kept.idempotency_key OPERATOR(pg_catalog.=) ANY(%(keys)s::text[])
"""

# Keys of requests that got an existing run, because it holds their natural key.  A row of another transaction that
# took one of these keys first stays as it is.
REMEMBER = """
INSERT INTO rowcall.request_keys (idempotency_key, key_owner, run_id, request_fingerprint)
SELECT kept.key, %(key_owner)s, kept.run_id, kept.request_fingerprint
FROM ROWS FROM (
    pg_catalog.unnest(%(keys)s::pg_catalog.text[]), pg_catalog.unnest(%(run_ids)s::pg_catalog.int8[]),
    pg_catalog.unnest(%(request_fingerprints)s::pg_catalog.text[])
) AS kept(key, run_id, request_fingerprint)
ORDER BY kept.key COLLATE pg_catalog."C"
ON CONFLICT DO NOTHING
RETURNING idempotency_key
"""

# Deletes these keys from request_keys if their runs do not exist: a request has reserved its key, but inserted no run,
# or the run was deleted while the key was written.  A function with its owner's rights, because the enqueuing role can
# delete nothing.
FREE_KEYS = "SELECT rowcall.free_keys(%(key_owner)s, %(keys)s::pg_catalog.text[])"

KEY_RULE = f"must be 1 to {KEY_CHARACTERS} printable characters"


class Keys(NamedTuple):
    """The keys of one request, each with its fingerprint."""

    natural_key: str | None = None
    content_fingerprint: str | None = None
    key: str | None = None
    request_fingerprint: str | None = None


NO_KEYS = Keys()


class Holder(NamedTuple):
    """A run that has a key, and the fingerprint stored with it."""

    run_id: int
    fingerprint: str | None


class Holders(NamedTuple):
    """The runs that hold keys: by natural key, and by the caller's key."""

    facts: dict[str, Holder]
    requests: dict[str, Holder]


def natural_key_of(declared: JobType, payload: Mapping[str, Any]) -> str | None:
    """Return the natural key that the type derives from this payload; raise RunInvalid if it is not a valid key."""
    key = declared.natural_key(payload)
    if key is not None and not _is_key(key):
        raise RunInvalid({"payload": f"its natural key, which {declared.name} derives from it, {KEY_RULE}"})
    return key


def checked_key(key: str | None) -> str | None:
    """Return the caller's key; raise RunInvalid if it is not a valid key."""
    if key is not None and not _is_key(key):
        raise RunInvalid({"idempotency_key": KEY_RULE})
    return key


def _is_key(key: str) -> bool:
    return isinstance(key, str) and 0 < len(key) <= KEY_CHARACTERS and key.isprintable()


def find_holders(connection: Connection, job_type: str, key_owner: str, requests: Sequence[Keys]) -> Holders:
    """Return the runs that hold these keys."""
    parameters = {
        "job_type": job_type,
        "key_owner": key_owner,
        "natural_keys": [one.natural_key for one in requests if one.natural_key is not None],
        "keys": [one.key for one in requests if one.key is not None],
    }
    found = Holders({}, {})
    for row in fetch_all(connection, FIND_HOLDERS, parameters) if requests else []:
        holder = Holder(row["id"], row["fingerprint"])
        if row["key"] is None:
            found.facts[row["natural_key"]] = holder
        elif row["is_remembered"]:
            found.requests.setdefault(row["key"], holder)
        else:
            found.requests[row["key"]] = holder
    return found


def remember(connection: Connection, key_owner: str, requests: Mapping[str, Holder]) -> None:
    """Store which runs these idempotency keys belong to; raise KeyGone if another request has just taken one."""
    keys = list(requests)
    free_keys(connection, key_owner, [Keys(key=key) for key in keys])
    parameters = {
        "key_owner": key_owner,
        "keys": keys,
        "run_ids": [requests[key].run_id for key in keys],
        "request_fingerprints": [requests[key].fingerprint for key in keys],
    }
    if len(fetch_all(connection, REMEMBER, parameters)) < len(keys):
        raise KeyGone


def free_keys(connection: Connection, key_owner: str, requests: Sequence[Keys]) -> None:
    """Free those of these idempotency keys that are stored but belong to no run."""
    keys = [one.key for one in requests if one.key is not None]
    if keys:
        fetch_all(connection, FREE_KEYS, {"key_owner": key_owner, "keys": keys})


def replayed(holders: Holders, job_type: str, keys: Keys) -> int:
    """Return the run that this request repeats; raise KeyConflict or NaturalKeyConflict if the content differs.

    A repeated request is a replay even if its own run has ended and another run now holds the natural key.
    """
    request = holders.requests.get(keys.key) if keys.key is not None else None
    fact = holders.facts.get(keys.natural_key) if keys.natural_key is not None else None
    if request is not None:
        if request.fingerprint == keys.request_fingerprint:
            return request.run_id
        other = fact.run_id if fact is not None and fact.run_id != request.run_id else None
        raise KeyConflict(str(keys.key), request.run_id, keys.natural_key, other)
    if fact is None:
        raise KeyGone
    if fact.fingerprint != keys.content_fingerprint:
        raise NaturalKeyConflict(job_type, str(keys.natural_key), fact.run_id)
    return fact.run_id
