"""Look: one run, its attempts, and the list of runs."""

from __future__ import annotations

from collections.abc import Sequence

from shared.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one
from shared.errors import RunNotFound

GET_RUN = "SELECT * FROM job_runs WHERE id = %(run_id)s"

# For who means to change it: waits for whoever is changing it now, and shows what that became.
LOCK_RUN = f"{GET_RUN} FOR UPDATE"

# job_attempts' primary key, in its order.
ATTEMPTS = "SELECT * FROM job_attempts WHERE run_id = %(run_id)s ORDER BY lease_no"

# job_runs_created, backwards.
LIST_RUNS = """
SELECT * FROM job_runs
WHERE (%(statuses)s::text[] IS NULL OR status = ANY(%(statuses)s::text[]))
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s
"""


def get_run(connection: Connection, run_id: int) -> Row:
    """The run with this id, or RunNotFound."""
    return _found(connection, GET_RUN, run_id)


def lock_run(connection: Connection, run_id: int) -> Row:
    """The same, and nobody else can change it before the caller's transaction ends."""
    return _found(connection, LOCK_RUN, run_id)


def _found(connection: Connection, sql: str, run_id: int) -> Row:
    row = fetch_one(connection, sql, {"run_id": run_id}) if 0 < run_id <= LARGEST_ID else None
    if row is None:
        raise RunNotFound(run_id)
    return row


def attempts_of(connection: Connection, run_id: int) -> list[Row]:
    """The attempts of a run that did not end in success, the first one first."""
    return fetch_all(connection, ATTEMPTS, {"run_id": run_id})


def list_runs(connection: Connection, statuses: Sequence[str] = (), limit: int = 50) -> list[Row]:
    """The newest runs, of all statuses or of these."""
    return fetch_all(connection, LIST_RUNS, {"statuses": list(statuses) or None, "limit": limit})
