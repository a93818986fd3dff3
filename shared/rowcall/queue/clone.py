"""Clone: the content of a run asked for again, as a run of its own."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all
from rowcall.job_types import catalogue
from rowcall.queue.enqueue import (
    INSERT,
    UNLESS_KEY_IS_TAKEN,
    Enqueued,
    Prepared,
    answered,
    check_options,
    checked_key,
    fingerprint_of,
    holders,
    stored_text,
)
from rowcall.queue.operate import check_seen, refused
from rowcall.queue.timestamps import in_utc
from rowcall.queue.views.inspect import get_run, lock_run
from rowcall.status import Status

# The key of the business fact and the occurrence stay the original's.  What was pruned has no content to ask for again.
CLONE = f"""{INSERT}
SELECT job_type, coalesce(%(payload)s::jsonb, payload), coalesce(%(queue)s, queue), coalesce(%(priority)s, priority),
    coalesce(%(run_at)s::timestamptz, now()), coalesce(%(max_attempts)s, max_attempts), %(key)s, %(fingerprint)s,
    %(who)s, '{Status.QUEUED}'
FROM rowcall.job_runs WHERE id = %(run_id)s AND pruned_at IS NULL
{UNLESS_KEY_IS_TAKEN}
"""

CHANGEABLE = ("payload", "run_at", "queue", "priority", "max_attempts")


def clone(
    connection: Connection,
    run_id: int,
    operator: Operator,
    seen: Container[str] | None = None,
    *,
    key: str | None = None,
    **changes: Any,
) -> Enqueued:
    """Enqueue the same content again, with other values of CHANGEABLE where some are given.

    The same key with the same changes to the same run is a replay; without a key every call makes a run.
    """
    run = get_run(connection, run_id)
    chosen = _checked(run, dict.fromkeys(CHANGEABLE) | changes)
    known = {name: value for name, value in chosen.items() if value is not None}
    wanted = Prepared("", checked_key(key), fingerprint_of(f"clone of {run_id}", known, {}))
    values = {**chosen, "key": key, "fingerprint": wanted.fingerprint, "run_id": run_id, "who": operator.who}
    # A clone that is refused leaves nothing, also for a caller who catches that and goes on.
    with all_or_nothing(connection):
        rows = fetch_all(connection, CLONE, {**values, "payload": _text(chosen["payload"])})
        if not rows and (key is None or not holders(connection, [key])):
            raise refused(run, "clone")
        [outcome] = answered(connection, [wanted], rows)
        if not outcome.replayed:
            check_seen(lock_run(connection, run_id), seen)
            before = {"cloned_from": run_id}
            record(connection, operator.who, "clone", "run", outcome.run_id, before, known or None, operator.request_id)
    return outcome


def _checked(run: Row, chosen: dict[str, Any]) -> dict[str, Any]:
    """What is to be other than in the original, checked as if it were asked for anew."""
    if all(value is None for value in chosen.values()):
        return chosen
    kind = catalogue()[run["job_type"]]
    check_options(kind, {**chosen, "priority": chosen["priority"] or 0})
    payload = None if chosen["payload"] is None else kind.checked(chosen["payload"])
    return {**chosen, "payload": payload, "run_at": in_utc(chosen["run_at"])}


def _text(payload: dict[str, Any] | None) -> str | None:
    return None if payload is None else stored_text(payload)
