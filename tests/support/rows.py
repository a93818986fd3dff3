"""Insert rows in the state that a test needs: back-dated, so that no test waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rowcall.base.database import Connection, Row, fetch_one, fetch_value
from rowcall.status import FINAL, Status

WORKER = "worker-1"

COLUMNS: dict[str, str] = {
    "job_type": "'noop'",
    "lease_no": "3",
    "attempts": "2",
    "max_attempts": "5",
    "locked_by": "NULL",
    "locked_until": "NULL",
    "finished_at": "NULL",
    "run_at": "now() - interval '1 minute'",
}


def run_in(connection: Connection, status: Status, **columns: str) -> Row:
    """Insert a run in this status, on its second attempt of five; columns are given as SQL."""
    values = {**COLUMNS, "status": f"'{status}'"}
    if status is Status.RUNNING:
        values |= {"locked_by": f"'{WORKER}'", "locked_until": "now() + interval '2 minutes'"}
    if status in (Status.FAILED, Status.DEAD):
        values["failed_at"] = "now()"
    if status in FINAL:
        values["finished_at"] = "now()"
    values |= columns
    row = fetch_one(
        connection,
        f"INSERT INTO rowcall.job_runs ({', '.join(values)}) VALUES ({', '.join(values.values())}) RETURNING *",
    )
    assert row is not None
    return row


def live_runs(connection: Connection, queue: str) -> None:
    """Insert a run that has been due for two hours, a running one, and a failed one that waits for an hour."""
    run_in(connection, Status.QUEUED, run_at="now() - interval '2 hours'", queue=f"'{queue}'")
    run_in(connection, Status.RUNNING, queue=f"'{queue}'")
    run_in(connection, Status.FAILED, run_at="now() + interval '1 hour'", queue=f"'{queue}'")


def row_of(connection: Connection, run_id: int) -> dict[str, Any]:
    """Return the run's row."""
    row = fetch_one(connection, "SELECT * FROM rowcall.job_runs WHERE id = %(run_id)s", {"run_id": run_id})
    assert row is not None
    return row


def definition_of(connection: Connection, name: str) -> int:
    """Insert a definition with this name and no schedule, and return its id."""
    sql = "INSERT INTO rowcall.job_definitions (name, job_type) VALUES (%(name)s, 'noop') RETURNING id"
    found: int = fetch_value(connection, sql, {"name": name})
    return found


def at(moment: datetime) -> str:
    """Return a datetime as SQL."""
    return f"'{moment.isoformat()}'"
