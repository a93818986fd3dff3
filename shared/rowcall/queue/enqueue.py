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
from rowcall.base.jsonb import size_of, stored
from rowcall.base.timestamps import in_utc, unusable
from rowcall.job_types import JobType, catalogue
from rowcall.job_types.declaration import KEY_CHARACTERS, NAME
from rowcall.status import Status

# A payload names what to work on; what is larger than this belongs in a table or a file of the app's own.
PAYLOAD_BYTES = 64 * 1024

# How often a key is tried whose run is pruned meanwhile.
TRIES = 3

# job_runs_idempotency_key is the arbiter of equal keys: a row that loses is not returned, and INSERT ... ON CONFLICT
# has by then waited for the winner's commit.  The commit also wakes a worker that sleeps.  Functions, operators
# and types are written out: these statements run in callers' transactions, whose search_path may hold others.
INSERT = """
INSERT INTO rowcall.job_runs
    (id, job_type, payload, queue, priority, run_at, max_attempts, idempotency_key, request_fingerprint, created_by,
     status)
OVERRIDING SYSTEM VALUE
"""
NEXT_ID = "pg_catalog.nextval('rowcall.job_runs_id_seq')"
UNLESS_KEY_IS_TAKEN = "ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING"
IS_DUE = "run_at OPERATOR(pg_catalog.<=) pg_catalog.now()"

# For one run: planning the statement for ten thousand takes longer than inserting one.
ENQUEUE_ONE = f"""{INSERT}
VALUES (DEFAULT, %(job_type)s, %(payload)s::pg_catalog.jsonb, %(queue)s, %(priority)s,
        coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now()),
        %(max_attempts)s, %(key)s, %(fingerprint)s, %(created_by)s, '{Status.QUEUED}')
{UNLESS_KEY_IS_TAKEN}
RETURNING id, idempotency_key, CASE WHEN {IS_DUE} THEN rowcall.wake(%(queue)s, %(job_type)s) END AS woken
"""

# Ids are drawn in the order of the requests, so that the first one goes first.  Rows are inserted in the order of their
# keys, so that callers with the same keys cannot deadlock.
ENQUEUE_MANY = f"""
WITH request AS MATERIALIZED (
    SELECT {NEXT_ID} AS id, payload, key, fingerprint, position
    FROM ROWS FROM (
        pg_catalog.unnest(%(payloads)s::pg_catalog.jsonb[]), pg_catalog.unnest(%(keys)s::pg_catalog.text[]),
        pg_catalog.unnest(%(fingerprints)s::pg_catalog.text[])
    ) WITH ORDINALITY AS given(payload, key, fingerprint, position)
    ORDER BY position
), new AS (
{INSERT}
SELECT request.id, %(job_type)s, request.payload, %(queue)s, %(priority)s,
       coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now()),
       %(max_attempts)s, request.key, request.fingerprint, %(created_by)s, '{Status.QUEUED}'
FROM request
ORDER BY request.key COLLATE pg_catalog."C", request.position
{UNLESS_KEY_IS_TAKEN}
RETURNING id, idempotency_key, {IS_DUE} AS is_due
), woken AS MATERIALIZED (
    SELECT rowcall.wake(%(queue)s, %(job_type)s) FROM new WHERE is_due LIMIT 1
)
SELECT id, idempotency_key, (SELECT pg_catalog.count(*) FROM woken) AS woken FROM new
"""

# A statement of its own: the INSERT's snapshot is older than the winner it has just lost to.  The run may not
# have reached the synchronous standby yet: the message makes the commit wait for it, which otherwise wrote nothing.
FIND_BY_KEY = """
SELECT id, idempotency_key, request_fingerprint, pg_catalog.pg_logical_emit_message(true, 'rowcall', '') AS replicated
FROM rowcall.job_runs
WHERE idempotency_key OPERATOR(pg_catalog.=) ANY(%(keys)s::text[])
"""


@dataclass(frozen=True)
class Enqueued:
    """The run of a request; `replayed` when an earlier request made it."""

    run_id: int
    replayed: bool


@dataclass(frozen=True)
class Prepared:
    """One requested run, in the form in which it is stored."""

    payload: str
    key: str | None
    fingerprint: str


def enqueue(connection: Connection, job_type: str, payload: Mapping[str, Any], **options: Any) -> Enqueued:
    """Request one run.  Options: key, run_at, queue, priority, max_attempts, created_by (see enqueue_many)."""
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
    """Request many runs of one type in the caller's transaction; the outcomes are in the order of the payloads.

    A run's key is the one in `keys`, else the type's natural key; the same key with the same content is a replay of
    the existing run; with other content it is a KeyConflict, and nothing of this call is enqueued.
    """
    declared = catalogue()[job_type]
    options = {"run_at": run_at, "queue": queue, "priority": priority, "max_attempts": max_attempts}
    check_options(declared, options)
    options["run_at"] = in_utc(run_at)
    requests = [
        prepared(declared, payload, options, key)
        for payload, key in zip(payloads, keys or [None] * len(payloads), strict=True)
    ]
    columns = {
        **options,
        "job_type": job_type,
        "queue": queue or declared.queue,
        "max_attempts": max_attempts or declared.max_attempts,
        "created_by": created_by,
    }
    return enqueue_prepared(connection, requests, columns)


def enqueue_prepared(
    connection: Connection, requests: Sequence[Prepared], columns: Mapping[str, Any]
) -> list[Enqueued]:
    """The same for requests that are checked already; `columns` are those that all of them share.

    A key may be lost to a run that is pruned before it is looked up: then the key is free, and is tried again.
    """
    for _ in range(TRIES - 1):
        with suppress(KeyGone):
            return _enqueued(connection, requests, columns)
    return _enqueued(connection, requests, columns)


def _enqueued(connection: Connection, requests: Sequence[Prepared], columns: Mapping[str, Any]) -> list[Enqueued]:
    if len(requests) == 1:
        rows = fetch_all(connection, ENQUEUE_ONE, {**columns, **vars(requests[0])})
        return outcomes_of(connection, requests, rows)
    arrays = {
        "payloads": [request.payload for request in requests],
        "keys": [request.key for request in requests],
        "fingerprints": [request.fingerprint for request in requests],
    }
    # All runs are enqueued or none, also for a caller that catches the conflict and goes on.
    with all_or_nothing(connection):
        return outcomes_of(connection, requests, fetch_all(connection, ENQUEUE_MANY, {**columns, **arrays}))


def outcomes_of(connection: Connection, requests: Sequence[Prepared], rows: Sequence[Row]) -> list[Enqueued]:
    """The outcome of each request, in order.  `rows` are the new runs; the other keys have a run already."""
    keyless = iter([row["id"] for row in rows if row["idempotency_key"] is None])
    new = {row["idempotency_key"]: row["id"] for row in rows if row["idempotency_key"] is not None}
    taken = holders(connection, [one.key for one in requests if one.key is not None and one.key not in new])
    outcomes = []
    for request in requests:
        if request.key is None:
            outcomes.append(Enqueued(next(keyless), replayed=False))
        elif request.key in new:
            # Of equal keys within one call the first makes the run, and the others are its replays.
            run_id = new.pop(request.key)
            taken[request.key] = run_id, request.fingerprint
            outcomes.append(Enqueued(run_id, replayed=False))
        elif request.key not in taken:
            raise KeyGone(request.key)
        else:
            run_id, fingerprint = taken[request.key]
            if fingerprint != request.fingerprint:
                raise KeyConflict(request.key, run_id)
            outcomes.append(Enqueued(run_id, replayed=True))
    return outcomes


def holders(connection: Connection, keys: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Key -> id and fingerprint of the run that holds it."""
    rows = fetch_all(connection, FIND_BY_KEY, {"keys": keys}) if keys else []
    return {row["idempotency_key"]: (row["id"], row["request_fingerprint"]) for row in rows}


def check_options(declared: JobType, options: Mapping[str, Any]) -> None:
    """Refuse what the table would refuse, with the field's name."""
    wrong = {}
    if options.get("run_at") is not None and (complaint := unusable(options["run_at"])):
        wrong["run_at"] = complaint
    if options["queue"] is not None and not NAME.fullmatch(options["queue"]):
        wrong["queue"] = "must be lower-case words such as mail"
    elif declared.max_running is not None and options["queue"] not in (None, declared.queue):
        wrong["queue"] = f"must be {declared.queue}, where the max_running of {declared.name} holds"
    if not -32768 <= options["priority"] <= 32767:
        wrong["priority"] = "must be a whole number from -32768 (first) to 32767 (last)"
    if options["max_attempts"] is not None and not 1 <= options["max_attempts"] <= 1000:
        wrong["max_attempts"] = "must be a whole number from 1 to 1000"
    if wrong:
        raise RunInvalid(wrong)


def prepared(
    declared: JobType,
    payload: Mapping[str, Any],
    options: Mapping[str, Any],
    key: str | None = None,
    natural: bool = True,
) -> Prepared:
    """Check one payload, and give it its key: the caller's, else the natural key of its type."""
    checked = declared.checked(payload)
    key = declared.natural_key(checked) if key is None and natural else key
    return Prepared(stored_text(checked), checked_key(key), fingerprint_of(declared.name, checked, options))


def stored_text(payload: Mapping[str, Any]) -> str:
    """The payload as text for jsonb, refused by name where it is too large or cannot be stored."""
    try:
        text = stored(payload)
    except ValueError as error:
        raise RunInvalid({"payload": f"cannot be stored as JSON: {error}"}) from None
    size = size_of(text)
    if size > PAYLOAD_BYTES:
        raise RunInvalid(
            {
                "payload": f"is {size} bytes as PostgreSQL stores it; the limit is {PAYLOAD_BYTES}:"
                " store the data in a table or file of your own, and send its id"
            }
        )
    return text


def checked_key(key: str | None) -> str | None:
    """The key, refused where it cannot be one."""
    if key is not None and (not 0 < len(key) <= KEY_CHARACTERS or not key.isprintable()):
        raise RunInvalid({"idempotency_key": f"must be 1 to {KEY_CHARACTERS} printable characters"})
    return key


def fingerprint_of(job_type: str, payload: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """What 'the same content' means: type, payload and every option that the caller gave."""
    content = json.dumps([job_type, payload, options], sort_keys=True, default=datetime.isoformat)
    return hashlib.sha256(content.encode()).hexdigest()
