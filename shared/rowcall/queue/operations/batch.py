"""A batch of an operation: one statement changes its runs, and those that it does not change are tried one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg2.errorcodes import DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE, UNIQUE_VIOLATION

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all, sqlstate_of
from rowcall.base.errors import KeyGone, RunNotFound, TransitionRefused
from rowcall.queue.fragments import WAKE_WORKERS
from rowcall.queue.operations.actions import CHANGE_MANY, CHANGE_ONE, Action, Step
from rowcall.queue.views.filters import MATCHES, Filter
from rowcall.status import Status

# How long a batch waits for a run that another transaction has locked: less than deadlock_timeout, so that in a
# deadlock this transaction gives way.  After the first such run it does not wait again, because one transaction may
# have locked many.
WAITED_MS, NOT_WAITED_MS = 500, 1

SET_WAIT = "SELECT set_config('lock_timeout', %(waited)s, true)"

LOCKED = "another transaction has locked the run, or is taking its natural key"
NO_MATCH = "the run no longer matches the filter"

# Two transactions must not each wait for a key that the other holds.  If runs are changed one by one, they take their
# keys in this order, as enqueue does; if they are changed all at once, they take them in any order.
BY_NATURAL_KEY = """
SELECT id FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s::bigint[]) ORDER BY natural_key COLLATE "C", id
"""

LOCK_MATCHING = f"SELECT id FROM rowcall.job_runs WHERE id = %(run_id)s AND {MATCHES} FOR UPDATE"

# If the statement for all runs fails for any reason, the runs are tried one by one.
TRIED_AGAIN = (UNIQUE_VIOLATION, DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE)


@dataclass(frozen=True)
class Batch:
    """The runs that were changed, and those that were not: run -> reason."""

    changed: set[int]
    refused: dict[int, str]


def change_batch(
    connection: Connection, action: Action, run_ids: Sequence[int], criteria: Filter, operator: Operator, **more: Any
) -> Batch:
    """Change those of these runs that still match; `more` are parameters of the action."""
    values = {**criteria.parameters(), **more, "who": operator.who, "request_id": operator.request_id}
    _wait(connection, WAITED_MS)
    rows = [row for step in action.value for row in _at_once(connection, step, {**values, "run_ids": list(run_ids)})]
    changed = {row["id"] for row in rows}
    if any(row["status"] == Status.QUEUED for row in rows):
        fetch_all(connection, WAKE_WORKERS)
    refused: dict[int, str] = {}
    left = [run_id for run_id in run_ids if run_id not in changed]
    ordered = [row["id"] for row in fetch_all(connection, BY_NATURAL_KEY, {"run_ids": left})] if left else []
    for run_id in ordered:
        reason = _one(connection, action, run_id, criteria, operator, more)
        if reason is None:
            changed.add(run_id)
        else:
            refused[run_id] = reason
    deleted = {run_id: str(RunNotFound(run_id)) for run_id in left if run_id not in ordered}
    return Batch(changed, refused | deleted)


def _at_once(connection: Connection, step: Step, values: dict[str, Any]) -> list[Row]:
    """Change all runs in one statement; none if a lock or a natural key makes it fail."""
    try:
        with all_or_nothing(connection):
            return fetch_all(connection, CHANGE_MANY[step.event], values)
    except Exception as error:
        if sqlstate_of(error) not in TRIED_AGAIN:
            raise
    return []


def _one(
    connection: Connection, action: Action, run_id: int, criteria: Filter, operator: Operator, more: dict[str, Any]
) -> str | None:
    """Change one run as an operator would; return why it was refused, or None."""
    try:
        with all_or_nothing(connection):
            if not fetch_all(connection, LOCK_MATCHING, {**criteria.parameters(), "run_id": run_id}):
                return NO_MATCH
            CHANGE_ONE[action](connection, run_id, operator, **more)
    except (TransitionRefused, RunNotFound, KeyGone) as refusal:
        return str(refusal)
    except Exception as error:
        if sqlstate_of(error) not in (LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED):
            raise
        _wait(connection, NOT_WAITED_MS)
        return LOCKED
    return None


def _wait(connection: Connection, milliseconds: int) -> None:
    fetch_all(connection, SET_WAIT, {"waited": str(milliseconds)})
