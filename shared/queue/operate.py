"""What an admin may do to a run that waits or has ended.  Every change leaves a row in audit_log."""

from __future__ import annotations

from typing import Any

from shared.audit import Admin, record
from shared.database import Connection, Row, fetch_all, fetch_one
from shared.errors import RunPruned, TransitionRefused
from shared.queue.inspect import get_run, lock_run
from shared.queue.wake import WAKE
from shared.status import Event, Status, allowed, sources_of

RUN_NOW = f"""
UPDATE job_runs SET status = '{Status.QUEUED}', run_at = now(), updated_at = now()
WHERE id = %(run_id)s AND status IN {sources_of(Event.RUN_NOW)}
RETURNING *
"""

# lease_no stays: it is what keeps a worker of an earlier life of this run from being believed.  Where what the run
# worked on was pruned, there is nothing to do again.
RETRY = f"""
UPDATE job_runs
SET status = '{Status.QUEUED}', attempts = 0, run_at = now(), finished_at = NULL, cancel_requested_at = NULL,
    last_error = NULL, error_type = NULL, failed_at = NULL, last_stack = NULL, progress = NULL, updated_at = now()
WHERE id = %(run_id)s AND status IN {sources_of(Event.RETRY)} AND pruned_at IS NULL
RETURNING *
"""

# A clone is a run of its own: same content, no key (the business fact's key is the original's), no occurrence.
CLONE = f"""
INSERT INTO job_runs (job_type, payload, queue, priority, max_attempts, created_by, status)
SELECT job_type, payload, queue, priority, max_attempts, %(who)s, '{Status.QUEUED}' FROM job_runs
WHERE id = %(run_id)s AND pruned_at IS NULL
RETURNING *
"""


def run_now(connection: Connection, run_id: int, admin: Admin) -> Row:
    """Make a waiting run due at once; its attempts stay counted."""
    return change(connection, Event.RUN_NOW, RUN_NOW, run_id, admin)


def retry(connection: Connection, run_id: int, admin: Admin) -> Row:
    """Give a dead or cancelled run a new life, with all its attempts."""
    return change(connection, Event.RETRY, RETRY, run_id, admin)


def clone(connection: Connection, run_id: int, admin: Admin) -> Row:
    """Enqueue the same content again, as a new run without key."""
    before = get_run(connection, run_id)
    row = fetch_one(connection, CLONE, {"run_id": run_id, "who": admin.who})
    if row is None:
        raise _pruned(get_run(connection, run_id), "clone")
    fetch_all(connection, f"SELECT {WAKE}")
    record(connection, admin.who, "clone", "run", row["id"], {"cloned_from": before["id"]}, None, admin.request_id)
    return row


def change(connection: Connection, event: Event, sql: str, run_id: int, admin: Admin, **more: Any) -> Row:
    """Carry one admin's event out: the row as it is now, or TransitionRefused with what is possible instead."""
    before = lock_run(connection, run_id)
    row = fetch_one(connection, sql, {"run_id": run_id, **more})
    if row is None and before["pruned_at"]:
        raise _pruned(before, event)
    if row is None:
        status = Status(before["status"])
        raise TransitionRefused(run_id, event, status, allowed(status), reason=f"lease {before['lease_no']}")
    if row["status"] == Status.QUEUED:
        fetch_all(connection, f"SELECT {WAKE}")
    record(connection, admin.who, event, "run", run_id, _audited(before), _audited(row), admin.request_id)
    return row


def _pruned(run: Row, event: str) -> RunPruned:
    return RunPruned(run["id"], event, run["status"], run["pruned_at"])


def _audited(row: Row) -> dict[str, Any]:
    """What of a run an audit needs to tell before from after."""
    told = ("status", "attempts", "max_attempts", "lease_no", "run_at", "locked_by", "cancel_requested_at")
    return {name: row[name] for name in told}
