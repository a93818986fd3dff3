"""Explain why a run waits that is handed over, or whose handler has put it off."""

from __future__ import annotations

from rowcall.base.database import Connection, Row, fetch_all, fetch_one
from rowcall.base.errors import NotHandedOver
from rowcall.queue.fragments import IN_ORDER
from rowcall.status import Event

# The attempt of the run's last lease, if the run was put off.  Primary key.
PUT_OFF = f"""
SELECT error FROM rowcall.job_attempts
WHERE run_id = %(id)s AND lease_no = %(lease_no)s AND outcome = '{Event.SNOOZE}'
"""

# The first runs of the lane that are not due yet: among them is one that the broker has not taken, if workers have
# stopped claiming runs of this type.  Uses job_runs_live.
LATER_MOST = 100
NOT_TAKEN = f"""
SELECT attempt.error FROM (
    SELECT id, lease_no, job_type FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = %(queue)s AND priority = %(priority)s AND run_at > now()
    ORDER BY run_at, id LIMIT {LATER_MOST}
) AS later JOIN rowcall.job_attempts AS attempt ON attempt.run_id = later.id AND attempt.lease_no = later.lease_no
WHERE later.job_type = %(job_type)s AND attempt.outcome = '{Event.SNOOZE}'
    AND attempt.error_type = '{NotHandedOver.__name__}'
LIMIT 1
"""


def put_off(connection: Connection, row: Row) -> str:
    """Return why the run's last attempt has put it off, after a colon; empty if it has not."""
    begun = row["lease_no"] > 0 and not row["due"]
    found = fetch_one(connection, PUT_OFF, row) if begun else None
    return "" if found is None else f": {found['error']}"


def not_taken(connection: Connection, row: Row) -> list[str]:
    """Say that workers do not claim this due run, if the broker has not taken another one of its type."""
    found = fetch_all(connection, IN_ORDER + NOT_TAKEN, row) if row["due"] else []
    return [f"workers wait until the broker takes messages again: {one['error']}" for one in found]
