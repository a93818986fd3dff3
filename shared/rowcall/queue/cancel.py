"""Cancel a waiting run at once; cancel a running one by asking its worker, or by force if the worker does not stop."""

from __future__ import annotations

from collections.abc import Container

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row
from rowcall.queue.fragments import HISTORY
from rowcall.queue.operate import change
from rowcall.queue.views.inspect import lock_run
from rowcall.status import Event, Status, sources_of

CANCELLED_AT_ONCE = f"status = '{Status.CANCELLED}', finished_at = now(), updated_at = now()"
IS_WAITING = f"status IN {sources_of(Event.CANCEL)}"
CANCEL = f"UPDATE rowcall.job_runs SET {CANCELLED_AT_ONCE} WHERE id = %(run_id)s AND {IS_WAITING} RETURNING *"

ASKED = "cancel_requested_at = coalesce(cancel_requested_at, now()), updated_at = now()"
IS_RUNNING = f"status IN {sources_of(Event.ASK_TO_CANCEL)}"
ASK_TO_CANCEL = f"UPDATE rowcall.job_runs SET {ASKED} WHERE id = %(run_id)s AND {IS_RUNNING} RETURNING *"

# Compare the lease_no that the operator saw, so that a newer attempt is not ended by mistake.  The owner's fence no
# longer matches afterwards.  `change` has locked the row, so both parts see the same row.
FORCE_CANCEL = f"""
WITH held AS (
    SELECT id, locked_by AS worker FROM rowcall.job_runs
    WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND status IN {sources_of(Event.FORCE_CANCEL)}
), forced AS (
    UPDATE rowcall.job_runs AS run
    SET status = '{Status.CANCELLED}', finished_at = now(), updated_at = now(),
        cancel_requested_at = coalesce(run.cancel_requested_at, now()), locked_by = NULL, locked_until = NULL
    FROM held WHERE run.id = held.id
    RETURNING run.*
), ended AS (
    SELECT forced.id AS run_id, lease_no, attempts AS attempt, '{Event.FORCE_CANCEL}' AS outcome, worker, started_at,
        'Cancelled' AS error_type, 'cancelled by force' AS error, NULL AS stack, false AS permanent,
        NULL::jsonb AS forensics
    FROM forced JOIN held ON forced.id = held.id
), history AS ({HISTORY})
SELECT * FROM forced
"""


def cancel(connection: Connection, run_id: int, operator: Operator, expected: Container[str] | None = None) -> Row:
    """Cancel a waiting run."""
    return change(connection, Event.CANCEL, CANCEL, run_id, operator, expected)


def ask_to_cancel(
    connection: Connection, run_id: int, operator: Operator, expected: Container[str] | None = None
) -> Row:
    """Ask the run's worker to stop; the worker sees the request at its next heartbeat."""
    return change(connection, Event.ASK_TO_CANCEL, ASK_TO_CANCEL, run_id, operator, expected)


def force_cancel(
    connection: Connection, run_id: int, lease_no: int, operator: Operator, expected: Container[str] | None = None
) -> Row:
    """Cancel a running run without waiting for its worker, whose later writes are refused."""
    return change(connection, Event.FORCE_CANCEL, FORCE_CANCEL, run_id, operator, expected, lease_no=lease_no)


def cancel_any(
    connection: Connection,
    run_id: int,
    operator: Operator,
    expected: Container[str] | None = None,
    *,
    force: bool = False,
) -> Row:
    """Cancel a run in any live status: a waiting one at once, a running one by asking its worker, or by force."""
    run = lock_run(connection, run_id, Event.CANCEL)
    if run["status"] != Status.RUNNING:
        return cancel(connection, run_id, operator, expected)
    if force:
        return force_cancel(connection, run_id, run["lease_no"], operator, expected)
    return ask_to_cancel(connection, run_id, operator, expected)
