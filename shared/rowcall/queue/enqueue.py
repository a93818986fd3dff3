"""Enqueue: a checked request becomes a queued run, once per key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all
from rowcall.base.errors import KeyConflict, KeyGone, RunInvalid
from rowcall.base.jsonb import stored
from rowcall.job_types import JobType, catalogue
from rowcall.job_types.declaration import KEY_CHARACTERS, NAME
from rowcall.queue.timestamps import in_utc, unusable
from rowcall.queue.wake import WAKE
from rowcall.status import Status

# A payload names what to work on; what is larger than this belongs in a table or a file of the app's own.
PAYLOAD_BYTES = 64 * 1024

# How often a key is asked for whose run goes meanwhile.
LOOKS = 3

# job_runs_idempotency_key is the arbiter of equal keys: a row that loses is not returned, and INSERT ... ON CONFLICT
# has by then waited for the winner's commit.  Whoever waits for work is woken with the commit.  Functions, operators
# and types are written out: these statements run in callers' transactions, whose search_path may hold others.
INSERT = """
INSERT INTO rowcall.job_runs
    (job_type, payload, queue, priority, run_at, max_attempts, idempotency_key, request_fingerprint, created_by, status)
"""
UNLESS_KEY_IS_TAKEN = f"""
ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id, idempotency_key, CASE WHEN run_at OPERATOR(pg_catalog.<=) pg_catalog.now() THEN {WAKE} END AS woken
"""

# For one run, because planning what serves ten thousand takes longer than inserting one.
ENQUEUE_ONE = f"""{INSERT}
VALUES (%(job_type)s, %(payload)s::pg_catalog.jsonb, %(queue)s, %(priority)s,
        coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now()),
        %(max_attempts)s, %(key)s, %(fingerprint)s, %(created_by)s, '{Status.QUEUED}')
{UNLESS_KEY_IS_TAKEN}
"""

ENQUEUE_MANY = f"""{INSERT}
SELECT %(job_type)s, wanted.payload, %(queue)s, %(priority)s,
       coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now()),
       %(max_attempts)s, wanted.key, wanted.fingerprint, %(created_by)s, '{Status.QUEUED}'
FROM ROWS FROM (
    pg_catalog.unnest(%(payloads)s::pg_catalog.jsonb[]), pg_catalog.unnest(%(keys)s::pg_catalog.text[]),
    pg_catalog.unnest(%(fingerprints)s::pg_catalog.text[])
) WITH ORDINALITY AS wanted(payload, key, fingerprint, position)
ORDER BY wanted.position
{UNLESS_KEY_IS_TAKEN}
"""

# A statement of its own: the INSERT's snapshot is older than the winner it has just lost to.
FIND_BY_KEY = """
SELECT id, idempotency_key, request_fingerprint FROM rowcall.job_runs
WHERE idempotency_key OPERATOR(pg_catalog.=) ANY(%(keys)s::text[])
"""


@dataclass(frozen=True)
class Enqueued:
    """The run that a request has now; `replayed` when an earlier request had made it."""

    run_id: int
    replayed: bool


@dataclass(frozen=True)
class Prepared:
    """One run asked for, in the form in which it is stored."""

    payload: str
    key: str | None
    fingerprint: str


def enqueue(connection: Connection, job_type: str, payload: Mapping[str, Any], **options: Any) -> Enqueued:
    """Ask for one run.  Options: key, run_at, queue, priority, max_attempts, created_by (see enqueue_many)."""
    key = options.pop("key", None)
    return enqueue_many(connection, job_type, [payload], keys=[key], **options)[0]


def enqueue_many(
    connection: Connection,
    job_type: str,
    payloads: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str | None] | None = None,
    run_at: datetime | None = None,
    queue: str | None = None,
    priority: int = 0,
    max_attempts: int | None = None,
    created_by: str | None = None,
) -> list[Enqueued]:
    """Ask for many runs of one type in the caller's transaction; the answers come in the order of the payloads.

    A run's key is the one in `keys`, else the type's natural key; the same key with the same content is a replay of
    the run there is, with other content a KeyConflict, and then nothing of this call was enqueued.
    """
    kind = catalogue()[job_type]
    chosen = {"run_at": run_at, "queue": queue, "priority": priority, "max_attempts": max_attempts}
    check_options(kind, chosen)
    chosen["run_at"] = in_utc(run_at)
    wanted = [
        prepared(kind, payload, chosen, key)
        for payload, key in zip(payloads, keys or [None] * len(payloads), strict=True)
    ]
    options = {
        **chosen,
        "job_type": job_type,
        "queue": queue or kind.queue,
        "max_attempts": max_attempts or kind.max_attempts,
        "created_by": created_by,
    }
    return enqueue_prepared(connection, wanted, options)


def enqueue_prepared(connection: Connection, wanted: Sequence[Prepared], options: Mapping[str, Any]) -> list[Enqueued]:
    """The same for what is checked already; `options` are the columns that all of them share.

    A key may be lost to a run that is pruned before it is looked for: then the key is free, and asked for once more.
    """
    for _ in range(LOOKS - 1):
        with suppress(KeyGone):
            return _enqueued(connection, wanted, options)
    return _enqueued(connection, wanted, options)


def _enqueued(connection: Connection, wanted: Sequence[Prepared], options: Mapping[str, Any]) -> list[Enqueued]:
    if len(wanted) == 1:
        rows = fetch_all(connection, ENQUEUE_ONE, {**options, **vars(wanted[0])})
        return answered(connection, wanted, rows)
    columns = {
        "payloads": [item.payload for item in wanted],
        "keys": [item.key for item in wanted],
        "fingerprints": [item.fingerprint for item in wanted],
    }
    # Many runs are all enqueued or none, also for a caller who catches the conflict and goes on.
    with all_or_nothing(connection):
        return answered(connection, wanted, fetch_all(connection, ENQUEUE_MANY, {**options, **columns}))


def answered(connection: Connection, wanted: Sequence[Prepared], rows: Sequence[Row]) -> list[Enqueued]:
    """Find the runs of the keys that were taken, and answer for each in order.  `rows` are those that are new."""
    keyless = iter([row["id"] for row in rows if row["idempotency_key"] is None])
    new = {row["idempotency_key"]: row["id"] for row in rows if row["idempotency_key"] is not None}
    found = holders(connection, [item.key for item in wanted if item.key is not None and item.key not in new])
    outcomes = []
    for item in wanted:
        if item.key is None:
            outcomes.append(Enqueued(next(keyless), replayed=False))
        elif item.key in new:
            # Of equal keys within one call the first makes the run, and the others are its replays.
            run_id = new.pop(item.key)
            found[item.key] = run_id, item.fingerprint
            outcomes.append(Enqueued(run_id, replayed=False))
        elif item.key not in found:
            raise KeyGone(item.key)
        else:
            run_id, fingerprint = found[item.key]
            if fingerprint != item.fingerprint:
                raise KeyConflict(item.key, run_id)
            outcomes.append(Enqueued(run_id, replayed=True))
    return outcomes


def holders(connection: Connection, keys: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Key -> id and fingerprint of the run that holds it."""
    rows = fetch_all(connection, FIND_BY_KEY, {"keys": keys}) if keys else []
    return {row["idempotency_key"]: (row["id"], row["request_fingerprint"]) for row in rows}


def check_options(kind: JobType, chosen: Mapping[str, Any]) -> None:
    """Refuse what the table would refuse, with the field's name."""
    wrong = {}
    if chosen.get("run_at") is not None and (complaint := unusable(chosen["run_at"])):
        wrong["run_at"] = complaint
    if chosen["queue"] is not None and not NAME.fullmatch(chosen["queue"]):
        wrong["queue"] = "must be lower-case words such as mail"
    elif kind.max_running is not None and chosen["queue"] not in (None, kind.queue):
        wrong["queue"] = f"must be {kind.queue}, where the max_running of {kind.name} holds"
    if not -32768 <= chosen["priority"] <= 32767:
        wrong["priority"] = "must be a whole number from -32768 (first) to 32767 (last)"
    if chosen["max_attempts"] is not None and not 1 <= chosen["max_attempts"] <= 1000:
        wrong["max_attempts"] = "must be a whole number from 1 to 1000"
    if wrong:
        raise RunInvalid(wrong)


def prepared(
    kind: JobType, payload: Mapping[str, Any], chosen: Mapping[str, Any], key: str | None = None, natural: bool = True
) -> Prepared:
    """Check one payload at the door and take its key: the caller's, else the one the business fact gives."""
    checked = kind.checked(payload)
    key = kind.natural_key(checked) if key is None and natural else key
    return Prepared(stored_text(checked), checked_key(key), fingerprint_of(kind.name, checked, chosen))


def stored_text(payload: Mapping[str, Any]) -> str:
    """The payload as jsonb takes it; what jsonb or the size limit would refuse is refused here, by name."""
    try:
        text = stored(payload)
    except ValueError as error:
        raise RunInvalid({"payload": f"cannot be stored as JSON: {error}"}) from None
    size = len(text.encode())
    if size > PAYLOAD_BYTES:
        raise RunInvalid(
            {
                "payload": f"is {size} bytes and may be {PAYLOAD_BYTES} at most:"
                " store the data in a table or file of your own, and send its id"
            }
        )
    return text


def checked_key(key: str | None) -> str | None:
    """The key, where it can be one."""
    if key is not None and (not 0 < len(key) <= KEY_CHARACTERS or not key.isprintable()):
        raise RunInvalid({"idempotency_key": f"must be 1 to {KEY_CHARACTERS} printable characters"})
    return key


def fingerprint_of(job_type: str, payload: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """What 'the same content' means: type, payload and every option that the caller chose."""
    content = json.dumps([job_type, payload, chosen], sort_keys=True, default=datetime.isoformat)
    return hashlib.sha256(content.encode()).hexdigest()
