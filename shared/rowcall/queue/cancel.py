"""Cancel: at once where nobody works on the run, by asking where somebody does, by force where asking is in vain."""

from __future__ import annotations

from collections.abc import Container

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row
from rowcall.queue.fragments import HISTORY
from rowcall.queue.operate import change
from rowcall.queue.views.inspect import lock_run
from rowcall.status import Event, Status, sources_of

CANCELLED_AT_ONCE = f"status = '{Status.CANCELLED}', finished_at = now(), updated_at = now()"
WAITS = f"status IN {sources_of(Event.CANCEL)}"
CANCEL = f"UPDATE rowcall.job_runs SET {CANCELLED_AT_ONCE} WHERE id = %(run_id)s AND {WAITS} RETURNING *"

ASKED = "cancel_requested_at = coalesce(cancel_requested_at, now()), updated_at = now()"
RUNS = f"status IN {sources_of(Event.ASK_TO_CANCEL)}"
ASK_TO_CANCEL = f"UPDATE rowcall.job_runs SET {ASKED} WHERE id = %(run_id)s AND {RUNS} RETURNING *"

# lease_no as seen: who looked at one attempt must not cut off the next.  The owner's fence no longer matches.
# `change` has locked the row, so what is seen here is what is ended.
FORCE_CANCEL = f"""
WITH seen AS (
    SELECT id, locked_by AS worker FROM rowcall.job_runs
    WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND status IN {sources_of(Event.FORCE_CANCEL)}
), forced AS (
    UPDATE rowcall.job_runs AS run
    SET status = '{Status.CANCELLED}', finished_at = now(), updated_at = now(),
        cancel_requested_at = coalesce(run.cancel_requested_at, now()), locked_by = NULL, locked_until = NULL
    FROM seen WHERE run.id = seen.id
    RETURNING run.*
), ended AS (
    SELECT forced.id AS run_id, lease_no, attempts AS attempt, '{Event.FORCE_CANCEL}' AS outcome, worker, started_at,
        'Cancelled' AS error_type, 'cancelled by force' AS error, NULL AS stack, false AS permanent,
        NULL::jsonb AS forensics
    FROM forced JOIN seen ON forced.id = seen.id
), history AS ({HISTORY})
SELECT * FROM forced
"""


def cancel(connection: Connection, run_id: int, operator: Operator, seen: Container[str] | None = None) -> Row:
    """Cancel a run that is waiting."""
    return change(connection, Event.CANCEL, CANCEL, run_id, operator, seen)


def ask_to_cancel(connection: Connection, run_id: int, operator: Operator, seen: Container[str] | None = None) -> Row:
    """Ask the worker that has the run to stop; it learns of it at its next heartbeat."""
    return change(connection, Event.ASK_TO_CANCEL, ASK_TO_CANCEL, run_id, operator, seen)


def force_cancel(
    connection: Connection, run_id: int, lease_no: int, operator: Operator, seen: Container[str] | None = None
) -> Row:
    """Cancel a running run over its owner's head; whatever the owner still writes is refused."""
    return change(connection, Event.FORCE_CANCEL, FORCE_CANCEL, run_id, operator, seen, lease_no=lease_no)


def cancel_any(
    connection: Connection, run_id: int, operator: Operator, seen: Container[str] | None = None, *, force: bool = False
) -> Row:
    """Cancel a run whatever it is at: at once where it waits; where it runs by asking its worker, or by force."""
    run = lock_run(connection, run_id)
    if run["status"] != Status.RUNNING:
        return cancel(connection, run_id, operator, seen)
    if force:
        return force_cancel(connection, run_id, run["lease_no"], operator, seen)
    return ask_to_cancel(connection, run_id, operator, seen)
