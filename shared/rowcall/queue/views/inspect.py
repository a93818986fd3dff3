"""One run, and its attempts; both may be in the archive."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import RunArchived, RunNotFound
from rowcall.queue.fragments import BY_INDEX, RUN_COLUMNS
from rowcall.queue.views import pages
from rowcall.queue.views.pages import Order

GET_RUN = """
SELECT run.*, false AS archived,
    (SELECT name FROM rowcall.job_definitions WHERE id = run.definition_id) AS definition
FROM rowcall.job_runs AS run WHERE run.id = %(run_id)s
"""

# By the primary key of each month.
GET_ARCHIVED = f"""
SELECT {RUN_COLUMNS}, true AS archived,
    (SELECT name FROM rowcall.job_definitions WHERE id = run.definition_id) AS definition
FROM rowcall.archived_runs AS run WHERE run.id = %(run_id)s
"""

# Whether an operator erased the run's details; pruning leaves no such row.  Uses audit_log_subject.
WAS_ERASED = """
SELECT EXISTS (SELECT FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = %(run_id)s AND action = 'erase')
"""

# For a change: waits for a transaction that is changing the run, and returns the changed run.
LOCK_RUN = f"{GET_RUN} FOR UPDATE OF run"

# A run in job_runs has its attempts in job_attempts, in the order of the primary key; an archived one in its own row.
FROM_ATTEMPTS = """FROM (
        SELECT * FROM rowcall.job_attempts WHERE run_id = %(run_id)s
        UNION ALL
        SELECT ended.* FROM rowcall.archived_runs AS run
        CROSS JOIN jsonb_populate_recordset(NULL::rowcall.job_attempts, run.attempts_ended) AS ended
        WHERE run.id = %(run_id)s
    ) AS attempt"""

ATTEMPTS = f"SELECT * {FROM_ATTEMPTS} ORDER BY lease_no"


# The same, a page at a time.
ATTEMPTS_PAGE = {
    order: f"""
WITH shown AS (
    SELECT * {FROM_ATTEMPTS} WHERE lease_no {order.past} %(beyond_lease_no)s
    ORDER BY lease_no {order.way} LIMIT %(limit)s + 1
), measured AS ({pages.measured(f"lease_no {order.way}")}
)
SELECT * FROM measured WHERE place <= %(limit)s AND {pages.FITS} ORDER BY lease_no {order.way}
"""
    for order in Order
}

# The columns that an operator's decision depends on, without those that a heartbeat or progress changes.
VERSION = ("status", "lease_no", "attempts", "run_at", "cancel_requested_at", "finished_at")

# The columns of VERSION of many runs, for requests that wait for one of them to change.
STATES = """
SELECT id, status, lease_no, attempts, run_at, cancel_requested_at, finished_at
FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s::bigint[])
"""


def get_run(connection: Connection, run_id: int) -> Row:
    """Return the run with this id, from the archive if it was pruned; raise RunNotFound if it is in neither."""
    row = _row(connection, GET_RUN, run_id)
    if row is None or row["pruned_at"]:
        row = archived_run(connection, run_id) or row
    if row is None:
        raise RunNotFound(run_id)
    return row


def lock_run(connection: Connection, run_id: int, event: str) -> Row:
    """Return the run with this id, locked until the caller's transaction ends; raise RunArchived if it is archived."""
    row = _row(connection, LOCK_RUN, run_id)
    if row is None:
        raise RunArchived(run_id, event, get_run(connection, run_id)["status"])
    return row


def archived_run(connection: Connection, run_id: int) -> Row | None:
    """Return the run with this id if it is in the archive."""
    return _row(connection, GET_ARCHIVED, run_id)


def _row(connection: Connection, sql: str, run_id: int) -> Row | None:
    return fetch_one(connection, sql, {"run_id": run_id}) if 0 < run_id <= LARGEST_ID else None


def states_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, Row]:
    """Return the columns of VERSION for each of these runs that exists."""
    return {row["id"]: row for row in fetch_all(connection, BY_INDEX + STATES, {"run_ids": [*run_ids]})}


def was_erased(connection: Connection, run_id: int) -> bool:
    """Return whether an operator erased the details of this run."""
    erased: bool = fetch_value(connection, WAS_ERASED, {"run_id": run_id})
    return erased


def version_of(run: Row) -> str:
    """Return a short string that changes with every event that matters to an operator."""
    state = json.dumps([run[name] for name in VERSION], default=lambda moment: moment.astimezone(UTC).isoformat())
    return hashlib.sha256(state.encode()).hexdigest()[:16]


def attempts_of(connection: Connection, run_id: int) -> list[Row]:
    """Return the attempts of a run that did not succeed, the oldest first."""
    return fetch_all(connection, ATTEMPTS, {"run_id": run_id})


def attempts_page(
    connection: Connection,
    run_id: int,
    beyond: int,
    limit: int,
    page_bytes: int = pages.PAGE_BYTES,
    order: Order = Order.ASC,
) -> tuple[list[Row], bool]:
    """Return the attempts beyond this lease, up to the limit or the size of a page, and whether there are more."""
    parameters = {"run_id": run_id, "beyond_lease_no": beyond, "limit": limit, "page_bytes": page_bytes}
    return pages.read(fetch_all(connection, ATTEMPTS_PAGE[order], parameters))
