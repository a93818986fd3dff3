"""Failed attempts for tests, back-dated."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_all
from rowcall.status import Event, Status
from tests.support.rows import run_in

INSERT = """
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at, error_type, error)
VALUES (%(run_id)s, 1, 1, %(outcome)s, 'w', now() - %(age)s::interval, %(error_type)s, %(error)s)
"""

ON_RUN = """
UPDATE rowcall.job_runs SET error_type = %(error_type)s, last_error = %(error)s WHERE id = %(run_id)s
"""


def failed(
    connection: Connection,
    error: str = "it broke",
    age: str = "5 minutes",
    error_type: str | None = "ValueError",
    outcome: Event = Event.FAIL,
    status: Status = Status.FAILED,
    **columns: str,
) -> int:
    """Insert a run with an attempt that ended this long ago with this error; return the run.

    `columns` are those of the run, as SQL.
    """
    run_id: int = run_in(connection, status, **columns)["id"]
    fetch_all(connection, ON_RUN, {"run_id": run_id, "error_type": error_type, "error": error})
    attempt = {"run_id": run_id, "outcome": outcome, "age": age, "error_type": error_type, "error": error}
    fetch_all(connection, INSERT, attempt)
    return run_id
