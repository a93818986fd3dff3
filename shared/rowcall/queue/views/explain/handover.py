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

# Among the first due runs of the lane is one that the broker has not taken lately, if workers have stopped claiming
# runs of this type; their longest pause is 30 seconds.  Uses job_runs_live.
FIRST_MOST = 100
NOT_TAKEN = f"""
SELECT attempt.error FROM (
    SELECT id, lease_no, job_type FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = %(queue)s AND priority = %(priority)s AND run_at <= now()
    ORDER BY run_at, id LIMIT {FIRST_MOST}
) AS first JOIN rowcall.job_attempts AS attempt ON attempt.run_id = first.id AND attempt.lease_no = first.lease_no
WHERE first.job_type = %(job_type)s AND attempt.outcome = '{Event.SNOOZE}'
    AND attempt.error_type = '{NotHandedOver.__name__}' AND attempt.ended_at > now() - interval '2 minutes'
ORDER BY attempt.ended_at DESC LIMIT 1
"""


def put_off(connection: Connection, row: Row) -> str:
    """Return why the run's last attempt has put it off, after a colon; empty if it has not."""
    begun = row["lease_no"] > 0 and not row["due"]
    found = fetch_one(connection, PUT_OFF, row) if begun else None
    return "" if found is None else f": {found['error']}"


def not_taken(connection: Connection, row: Row) -> list[str]:
    """Say that workers do not claim this due run, if the broker has not taken one of its type."""
    found = fetch_all(connection, IN_ORDER + NOT_TAKEN, row) if row["due"] else []
    return [f"workers wait until the broker takes messages again: {one['error']}" for one in found]
