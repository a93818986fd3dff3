"""Clone: enqueue the content of a run again, as a new run."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base import tracing
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all
from rowcall.base.errors import NaturalKeyHeld, RunArchived
from rowcall.base.timestamps import in_utc
from rowcall.job_types import catalogue
from rowcall.queue.enqueue import check_options, stored_text
from rowcall.queue.fragments import FROM_ALL_RUNS
from rowcall.queue.keys.fingerprint import fingerprint_of
from rowcall.queue.keys.holders import Keys, checked_key, find_holders, natural_key_of, replayed
from rowcall.queue.keys.insert import INSERT, IS_DUE, NEXT_ID, TIME, UNLESS_A_KEY_IS_TAKEN
from rowcall.queue.operate import check_version, refused
from rowcall.queue.views.inspect import get_run, lock_run
from rowcall.queue.views.results import Enqueued
from rowcall.status import Status

# A clone belongs to no occurrence.  It has the natural key of the original, so nothing is inserted while the original
# or another run holds that key.  A pruned run has content to enqueue again only in the archive.
CLONE = f"""{INSERT}
SELECT {NEXT_ID}, {TIME}, job_type, coalesce(%(payload)s::jsonb, payload), coalesce(%(queue)s, queue),
    coalesce(%(priority)s, priority),
    coalesce(%(run_at)s::timestamptz, now()), coalesce(%(max_attempts)s, max_attempts),
    %(natural_key)s, %(unique_mode)s, %(content_fingerprint)s,
    %(key)s, %(key_owner)s, %(request_fingerprint)s,
    %(who)s, %(trace_parent)s, '{Status.QUEUED}'
{FROM_ALL_RUNS} WHERE id = %(run_id)s AND pruned_at IS NULL AND NOT EXISTS (
    SELECT FROM rowcall.request_keys WHERE idempotency_key = %(key)s AND key_owner = %(key_owner)s
)
{UNLESS_A_KEY_IS_TAKEN}
RETURNING id, CASE WHEN {IS_DUE} THEN rowcall.wake(queue, job_type) END AS woken
"""

CHANGEABLE = ("payload", "run_at", "queue", "priority", "max_attempts")


def clone(
    connection: Connection,
    run_id: int,
    operator: Operator,
    expected: Container[str] | None = None,
    *,
    key: str | None = None,
    **changes: Any,
) -> Enqueued:
    """Enqueue the content of a run again as a new run; `changes` replace fields of CHANGEABLE.

    A request with the same key and the same changes to the same run is a replay.  Without a key, every call enqueues a
    run, unless the original or another run holds the natural key.
    """
    run = _original(connection, run_id)
    options = _checked(run, dict.fromkeys(CHANGEABLE) | changes)
    keys = _keys(run, options, key)
    values = {
        **options,
        **keys._asdict(),
        "payload": _text(options["payload"]),
        "unique_mode": run["unique_mode"],
        "key_owner": operator.key_owner,
        "run_id": run_id,
        "who": operator.who,
        "trace_parent": tracing.current(),
    }
    # Roll back a refused clone, even if the caller catches the error and continues.
    with all_or_nothing(connection):
        rows = fetch_all(connection, CLONE, values)
        if not rows:
            return Enqueued(_replayed(connection, run, keys, operator.key_owner), replayed=True)
        new_id = rows[0]["id"]
        check_version(run, expected)
        given = {name: value for name, value in options.items() if value is not None}
        before = {"cloned_from": run_id}
        record(connection, operator.who, "clone", "run", new_id, before, given or None, operator.request_id)
    return Enqueued(new_id, replayed=False)


def _original(connection: Connection, run_id: int) -> Row:
    """Return the run; lock it before its key is taken, because a retry uses the same order."""
    try:
        return lock_run(connection, run_id, "clone")
    except RunArchived:
        return get_run(connection, run_id)


def _keys(run: Row, options: dict[str, Any], key: str | None) -> Keys:
    """Return the clone's keys; its natural key is the original's, if that has one, or that of a changed payload."""
    given = {name: value for name, value in options.items() if value is not None}
    request = fingerprint_of(f"clone of {run['id']}", given, {}) if key is not None else None
    natural_key, content = run["natural_key"], run["content_fingerprint"]
    if options["payload"] is not None:
        natural_key = natural_key_of(catalogue()[run["job_type"]], options["payload"])
        content = fingerprint_of(run["job_type"], options["payload"], {}) if natural_key else None
    return Keys(natural_key, content, checked_key(key), request)


def _replayed(connection: Connection, run: Row, keys: Keys, key_owner: str) -> int:
    """Return the run of an earlier request with this key, or raise an error if the key cannot be replayed."""
    holders = find_holders(connection, run["job_type"], key_owner, [keys])
    if holders.requests:
        return replayed(holders, run["job_type"], keys)
    if holders.facts and not get_run(connection, run["id"])["pruned_at"]:  # its content may be in the archive
        [holder] = holders.facts.values()
        raise NaturalKeyHeld(run["id"], "clone", run["status"], holder.run_id)
    raise refused(connection, run, "clone")


def _checked(run: Row, options: dict[str, Any]) -> dict[str, Any]:
    """Check the changes like the options of a new request."""
    if all(value is None for value in options.values()):
        return options
    job_type = catalogue()[run["job_type"]]
    check_options(job_type, {**options, "priority": options["priority"] or 0})
    payload = None if options["payload"] is None else job_type.checked(options["payload"])
    return {**options, "payload": payload, "run_at": in_utc(options["run_at"])}


def _text(payload: dict[str, Any] | None) -> str | None:
    return None if payload is None else stored_text(payload)
