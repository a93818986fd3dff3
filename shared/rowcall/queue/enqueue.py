"""Enqueue: check a request and insert it as a queued run, once per key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack

from rowcall.base import tracing
from rowcall.base.database import Connection, all_or_nothing, fetch_all
from rowcall.base.errors import KeyGone, KeyTaken, RunInvalid
from rowcall.base.jsonb import size_of, stored
from rowcall.base.timestamps import in_utc, unusable
from rowcall.job_types import JobType, catalogue
from rowcall.job_types.declaration import ATTEMPTS_MOST, NAME, PRIORITY_FIRST, PRIORITY_LAST
from rowcall.queue.keys.fingerprint import fingerprint_of, sent_of
from rowcall.queue.keys.holders import (
    NO_KEYS,
    Holder,
    Keys,
    checked_key,
    find_holders,
    free_keys,
    natural_key_of,
    remember,
    replayed,
)
from rowcall.queue.keys.insert import ENQUEUE_MANY, WITH_KEYS_MOST, sent_keys, statement_for
from rowcall.queue.keys.keyless import as_array, insert_keyless
from rowcall.queue.views.results import Enqueued

# A payload names what to work on; larger data belongs in a table or a file of the app.
PAYLOAD_BYTES = 64 * 1024

# How often to try to take a key, if the run that has it is pruned before it is looked up.
TRIES = 3

# The owner of keys that come from the app's own process.
IN_PROCESS = "app"

# The id of the run whose handler enqueues: the `created_by` of the new runs begins with it, as `run 4711`.
PARENT: ContextVar[int | None] = ContextVar("rowcall_parent", default=None)


class Prepared(NamedTuple):
    """A checked request: the payload as JSON text, and the keys."""

    payload: str
    keys: Keys = NO_KEYS


class Options(TypedDict, total=False):
    """The options of a request besides payload and key, as in enqueue_many."""

    key_owner: str
    run_at: datetime | None
    queue: str | None
    priority: int
    max_attempts: int | None
    created_by: str | None


def enqueue(
    connection: Connection,
    job_type: str | JobType,
    payload: Mapping[str, Any],
    *,
    key: str | None = None,
    **options: Unpack[Options],
) -> Enqueued:
    """Enqueue one run in the caller's transaction (see enqueue_many)."""
    if unknown := options.keys() - Options.__annotations__:  # Python's own error would name enqueue_many.
        raise TypeError(f"enqueue() got an unexpected keyword argument: {', '.join(sorted(unknown))}")
    return enqueue_many(connection, job_type, [payload], keys=[key], **options)[0]


def enqueue_many(
    connection: Connection,
    job_type: str | JobType,
    payloads: Iterable[Mapping[str, Any]],
    *,
    keys: Iterable[str | None] | None = None,
    key_owner: str = IN_PROCESS,
    run_at: datetime | None = None,
    queue: str | None = None,
    priority: int = 0,
    max_attempts: int | None = None,
    created_by: str | None = None,
) -> list[Enqueued]:
    """Enqueue many runs of one type in the caller's transaction; the outcomes are in the order of the payloads.

    The name of a type is looked up in the catalogue of ROWCALL_APP.
    In a handler, `created_by` begins with the handler's own run.

    A run has the natural key that its type derives, and the key in `keys`, which lets the caller repeat the request.
    If a key is taken and the content is the same, the request is a replay of the run that has the key.  If the content
    differs, the call raises KeyConflict or NaturalKeyConflict, and enqueues nothing.
    """
    declared = catalogue()[job_type] if isinstance(job_type, str) else job_type
    options = {"run_at": run_at, "queue": queue, "priority": priority, "max_attempts": max_attempts}
    check_options(declared, options)
    options["run_at"] = in_utc(run_at)
    requests = _requests(declared, payloads, keys, options)
    try:
        return enqueue_prepared(connection, requests, columns_of(declared, options, key_owner, created_by))
    except Exception as error:
        # Imported here, because a web process hardly ever needs it.
        from rowcall.schema import mismatch_behind

        if mismatched := mismatch_behind(error):
            raise mismatched from error
        raise


def _requests(
    declared: JobType,
    payloads: Iterable[Mapping[str, Any]],
    keys: Iterable[str | None] | None,
    options: Mapping[str, Any],
) -> list[Prepared]:
    """Check all payloads and keys; if there are several, the error says which of them is invalid."""
    if not _is_list(payloads):
        raise RunInvalid({"payloads": "must be a list of objects, one for each run"})
    if keys is not None and not _is_list(keys):
        raise RunInvalid({"keys": "must be a list of keys, one for each payload"})
    sent = list(payloads)
    their_keys = [None] * len(sent) if keys is None else list(keys)
    if len(their_keys) != len(sent):
        raise RunInvalid({"keys": f"must be {len(sent)}, one for each payload, but there are {len(their_keys)}"})
    requests = []
    for position, (payload, key) in enumerate(zip(sent, their_keys, strict=True)):
        try:
            requests.append(prepared(declared, payload, options, key))
        except RunInvalid as error:
            raise (error if len(sent) == 1 else RunInvalid({"payloads": {position: error.fields}})) from None
    return requests


def _is_list(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | set | frozenset)


def columns_of(declared: JobType, options: Mapping[str, Any], key_owner: str, created_by: str | None) -> dict[str, Any]:
    """Return the columns that runs of this type with these options share."""
    return {
        **options,
        "job_type": declared.name,
        "queue": options["queue"] or declared.queue,
        "max_attempts": options["max_attempts"] or declared.max_attempts,
        "unique_mode": declared.unique,
        "key_owner": key_owner,
        "created_by": _creator(created_by),
    }


def _creator(given: str | None) -> str | None:
    parent = f"run {PARENT.get()}" if PARENT.get() is not None else None
    return f"{parent} ({given})" if parent and given else parent or given


def enqueue_prepared(
    connection: Connection, requests: Sequence[Prepared], columns: Mapping[str, Any]
) -> list[Enqueued]:
    """Enqueue checked requests, which share these `columns`.

    If the run that has a key is pruned before it is looked up, the key is free: try again.
    """
    attributes = {
        "messaging.system": "rowcall",
        "messaging.operation.type": "send",
        "messaging.destination.name": columns["queue"],
        "messaging.batch.message_count": len(requests),
        "rowcall.job_type": columns["job_type"],
    }
    with tracing.span(f"enqueue {columns['job_type']}", "PRODUCER", attributes=attributes):
        traced = {**columns, "trace_parent": tracing.current()}
        for _ in range(TRIES - 1):
            try:
                return _enqueued(connection, requests, traced)
            except KeyGone:
                free_keys(connection, columns["key_owner"], [request.keys for request in requests])
        return _enqueued(connection, requests, traced)


def _enqueued(connection: Connection, requests: Sequence[Prepared], columns: Mapping[str, Any]) -> list[Enqueued]:
    payloads = [request.payload for request in requests]
    if all(request.keys == NO_KEYS for request in requests):
        return [Enqueued(run_id, replayed=False) for run_id in insert_keyless(connection, payloads, columns)]
    if len(requests) == 1:
        [request] = requests
        sql = statement_for(request.keys, columns["unique_mode"])
        rows = fetch_all(connection, sql, {**columns, "payload": request.payload, **request.keys._asdict()})
        try:
            return outcomes_of(connection, requests, columns, {1: rows[0]["id"]} if rows else {})
        except KeyTaken:
            # A caller that catches the conflict and continues must find its key as free as before.
            free_keys(connection, columns["key_owner"], [request.keys])
            raise
    if sum(map(len, payloads)) > WITH_KEYS_MOST:
        raise RunInvalid({"payloads": f"exceed {WITH_KEYS_MOST} characters together: divide them into several calls"})
    # Enqueue all runs or none, even for a caller that catches the error and continues.
    with all_or_nothing(connection):
        keys = sent_keys([request.keys for request in requests])
        [inserted] = fetch_all(connection, ENQUEUE_MANY, {**columns, **keys, "payloads": as_array(payloads)})
        new = zip(inserted["positions"] or (), inserted["ids"] or (), strict=True)
        return outcomes_of(connection, requests, columns, dict(new))


def outcomes_of(
    connection: Connection, requests: Sequence[Prepared], columns: Mapping[str, Any], new: Mapping[int, int]
) -> list[Enqueued]:
    """Return the outcome of each request, in order: `new` maps positions, from 1, to new runs; other keys are taken.

    An idempotency key whose request gets the run that holds its natural key belongs to that run from now on, as if the
    run had been requested with it.
    """
    if len(new) == len(requests):
        return [Enqueued(new[position], replayed=False) for position in sorted(new)]
    left = [request.keys for position, request in enumerate(requests, 1) if position not in new]
    holders = find_holders(connection, columns["job_type"], columns["key_owner"], left)
    outcomes = []
    remembered: dict[str, Holder] = {}
    for position, request in enumerate(requests, 1):
        try:
            known = position not in new
            run_id = replayed(holders, columns["job_type"], request.keys) if known else new[position]
        except KeyTaken as error:
            error.position = position - 1
            error.other = next((one - 1 for one, new_id in new.items() if new_id == error.run_id), None)
            if error.other is not None:
                error.between(f"request {error.other + 1}", f"request {position}")
            raise
        key = request.keys.key
        if known and key is not None and key not in holders.requests:
            holders.requests[key] = remembered[key] = Holder(run_id, request.keys.request_fingerprint)
        outcomes.append(Enqueued(run_id, replayed=known))
    if remembered:
        remember(connection, columns["key_owner"], remembered)
    return outcomes


def check_options(declared: JobType | None, options: Mapping[str, Any]) -> None:
    """Raise RunInvalid if an option is not valid; the error names the field.  Without a type, no limit is checked."""
    wrong = {}
    run_at = options.get("run_at")
    if run_at is not None and not isinstance(run_at, datetime):
        wrong["run_at"] = "must be a datetime with an offset"
    elif run_at is not None and (complaint := unusable(run_at)):
        wrong["run_at"] = complaint
    if options["queue"] is not None and not (isinstance(options["queue"], str) and NAME.fullmatch(options["queue"])):
        wrong["queue"] = "must be lower-case words such as mail"
    elif declared and declared.max_running is not None and options["queue"] not in (None, declared.queue):
        wrong["queue"] = f"must be {declared.queue}: the max_running of {declared.name} applies to that queue"
    if not _is_whole(options["priority"]) or not PRIORITY_FIRST <= options["priority"] <= PRIORITY_LAST:
        wrong["priority"] = f"must be a whole number from {PRIORITY_FIRST} (first) to {PRIORITY_LAST} (last)"
    most = options["max_attempts"]
    if most is not None and (not _is_whole(most) or not 1 <= most <= ATTEMPTS_MOST):
        wrong["max_attempts"] = f"must be a whole number from 1 to {ATTEMPTS_MOST}"
    if wrong:
        raise RunInvalid(wrong)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def prepared(
    declared: JobType,
    payload: Mapping[str, Any],
    options: Mapping[str, Any],
    key: str | None = None,
    natural: bool = True,
) -> Prepared:
    """Check one payload, and compute its natural key; check the caller's key."""
    checked = declared.checked(payload)
    text = stored_text(checked)
    natural_key = natural_key_of(declared, checked) if natural else None
    if natural_key is None and key is None:
        return Prepared(text)
    same = fingerprint_of(declared.name, sent_of(checked, payload), options)
    return Prepared(text, Keys(natural_key, same if natural_key else None, checked_key(key), same if key else None))


def stored_text(payload: Mapping[str, Any]) -> str:
    """Return the payload as text for jsonb; raise RunInvalid if it is too large or cannot be stored."""
    try:
        text = stored(payload)
    except ValueError as error:
        raise RunInvalid({"payload": f"cannot be stored as JSON: {error}"}) from None
    size = size_of(text)
    if size > PAYLOAD_BYTES:
        raise RunInvalid(
            {
                "payload": f"is {size} bytes as PostgreSQL writes it; the limit is {PAYLOAD_BYTES}:"
                " store the data in a table or file of your own, and send its id"
            }
        )
    return text
