"""Clone: the content of a run enqueued again, as a run of its own."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all
from rowcall.base.timestamps import in_utc
from rowcall.job_types import catalogue
from rowcall.queue.enqueue import (
    INSERT,
    IS_DUE,
    NEXT_ID,
    UNLESS_KEY_IS_TAKEN,
    Enqueued,
    Prepared,
    check_options,
    checked_key,
    fingerprint_of,
    holders,
    outcomes_of,
    stored_text,
)
from rowcall.queue.operate import check_version, refused
from rowcall.queue.views.inspect import get_run, lock_run
from rowcall.status import Status

# The key of the business fact and the occurrence stay the original's.  A pruned run has no content to enqueue again.
CLONE = f"""{INSERT}
SELECT {NEXT_ID}, job_type, coalesce(%(payload)s::jsonb, payload), coalesce(%(queue)s, queue),
    coalesce(%(priority)s, priority),
    coalesce(%(run_at)s::timestamptz, now()), coalesce(%(max_attempts)s, max_attempts), %(key)s, %(fingerprint)s,
    %(who)s, '{Status.QUEUED}'
FROM rowcall.job_runs WHERE id = %(run_id)s AND pruned_at IS NULL
{UNLESS_KEY_IS_TAKEN}
RETURNING id, idempotency_key, CASE WHEN {IS_DUE} THEN rowcall.wake(queue, job_type) END AS woken
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
    """Enqueue the same content again, with other values of CHANGEABLE where some are given.

    The same key with the same changes to the same run is a replay; without a key every call makes a run.
    """
    run = get_run(connection, run_id)
    options = _checked(run, dict.fromkeys(CHANGEABLE) | changes)
    given = {name: value for name, value in options.items() if value is not None}
    request = Prepared("", checked_key(key), fingerprint_of(f"clone of {run_id}", given, {}))
    values = {**options, "key": key, "fingerprint": request.fingerprint, "run_id": run_id, "who": operator.who}
    # A refused clone leaves nothing, also for a caller that catches the error and goes on.
    with all_or_nothing(connection):
        rows = fetch_all(connection, CLONE, {**values, "payload": _text(options["payload"])})
        if not rows and (key is None or not holders(connection, [key])):
            raise refused(run, "clone")
        [outcome] = outcomes_of(connection, [request], rows)
        if not outcome.replayed:
            check_version(lock_run(connection, run_id), expected)
            before = {"cloned_from": run_id}
            record(connection, operator.who, "clone", "run", outcome.run_id, before, given or None, operator.request_id)
    return outcome


def _checked(run: Row, options: dict[str, Any]) -> dict[str, Any]:
    """The changes to the original, checked as those of a new request are."""
    if all(value is None for value in options.values()):
        return options
    job_type = catalogue()[run["job_type"]]
    check_options(job_type, {**options, "priority": options["priority"] or 0})
    payload = None if options["payload"] is None else job_type.checked(options["payload"])
    return {**options, "payload": payload, "run_at": in_utc(options["run_at"])}


def _text(payload: dict[str, Any] | None) -> str | None:
    return None if payload is None else stored_text(payload)
