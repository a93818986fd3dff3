"""Bulk: retry or cancel the runs that a filter matches, with the guards that apply to a single run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from psycopg2.errorcodes import DEADLOCK_DETECTED, UNIQUE_VIOLATION

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_all, sqlstate_of
from rowcall.base.errors import FilterInvalid
from rowcall.queue.cancel import ASKED, CANCELLED_AT_ONCE, IS_RUNNING, IS_WAITING
from rowcall.queue.fragments import BY_INDEX, WAKE_WORKERS
from rowcall.queue.operate import AUDITED, RETRIABLE, RETRIED
from rowcall.queue.views.filters import MATCHES, Filter
from rowcall.queue.views.lists import SCANNED_MOST, SCANS, page_of, page_sql, parameters, scan_for, searched
from rowcall.status import BY_EVENT, Event, Status

CHANGED_MOST = 1000


class Step(NamedTuple):
    """An event, the runs that it applies to, and its changes."""

    event: Event
    guard: str
    changes: str


class Action(Enum):
    """A bulk action.  Its steps start from different statuses, so each run takes at most one of them."""

    RETRY = (Step(Event.RETRY, RETRIABLE, RETRIED),)
    # Do not ask a worker twice.
    CANCEL = (
        Step(Event.CANCEL, IS_WAITING, CANCELLED_AT_ONCE),
        Step(Event.ASK_TO_CANCEL, f"{IS_RUNNING} AND cancel_requested_at IS NULL", ASKED),
    )

    @property
    def statuses(self) -> tuple[Status, ...]:
        """Return the statuses that the action can start from."""
        return tuple(status for step in self.value for status in BY_EVENT[step.event].sources)

    @property
    def guard(self) -> str:
        """Return the condition on the runs that the action can change."""
        return "(" + " OR ".join(f"({step.guard})" for step in self.value) + ")"


@dataclass(frozen=True)
class Bulk:
    """The result: how many runs matched, which were changed (in a dry run: would be), and how many were not.

    `next` is the cursor for the next call, None at the end.
    """

    matched: int
    ids: list[int]
    refused: int
    next: str | None
    dry_run: bool


def change_many(step: Step) -> str:
    """Return the statement that changes the runs that still match and are not locked, with an audit row for each."""
    before, after = (
        "jsonb_build_object(" + ", ".join(f"'{name}', {row}.{name}" for name in AUDITED) + ")"
        for row in ("matching", "changed")
    )
    return f"""{BY_INDEX}
WITH matching AS MATERIALIZED (
    SELECT * FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s::bigint[]) AND {step.guard} AND {MATCHES}
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE rowcall.job_runs SET {step.changes} WHERE id = ANY(ARRAY(SELECT id FROM matching)) RETURNING *
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after, request_id)
    SELECT %(who)s, '{step.event}', 'run', changed.id, {before}, {after}, %(request_id)s
    FROM changed JOIN matching ON matching.id = changed.id ORDER BY changed.id
)
SELECT id, status FROM changed
"""


# (Action, scan) -> a page of the runs that the action can change.
PAGES = {
    (action.name.lower(), scan.name): page_sql(scan, "id, created_at", action.guard)
    for action in Action
    for scan in SCANS
}

# Event -> the statement that changes many runs.
CHANGE_MANY = {step.event: change_many(step) for action in Action for step in action.value}


BY_NATURAL_KEY = """
SELECT id FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s::bigint[]) ORDER BY natural_key COLLATE "C", id
"""


def bulk(
    connection: Connection,
    action: Action,
    criteria: Filter,
    operator: Operator,
    *,
    everything: bool = False,
    limit: int = CHANGED_MOST,
    cursor: str | None = None,
    dry_run: bool = False,
    most: int = SCANNED_MOST,
) -> Bulk:
    """Change the newest runs that match, `limit` at most; runs that other transactions have locked are skipped."""
    narrowed = _narrowed(action, criteria, everything)
    sql = PAGES[action.name.lower(), scan_for(narrowed).name]
    page = page_of(connection, sql, narrowed, parameters(narrowed, limit, cursor, most))
    matching = [run["id"] for run in page.runs]
    if dry_run:
        return Bulk(len(matching), matching, 0, page.next, dry_run)
    changed = changed_of(connection, action, matching, narrowed, operator)
    return Bulk(
        len(matching),
        [run_id for run_id in matching if run_id in changed],
        len(matching) - len(changed),
        page.next,
        dry_run,
    )


def changed_of(
    connection: Connection, action: Action, run_ids: Sequence[int], criteria: Filter, operator: Operator
) -> dict[int, Status]:
    """Change those of these runs that still match; return id -> new status."""
    values = {
        **criteria.parameters(),
        "run_ids": list(run_ids),
        "who": operator.who,
        "request_id": operator.request_id,
    }
    rows = [row for step in action.value for row in _changed(connection, step, values)]
    changed = {row["id"]: Status(row["status"]) for row in rows}
    if Status.QUEUED in changed.values():
        fetch_all(connection, WAKE_WORKERS)
    return changed


def _changed(connection: Connection, step: Step, parameters: dict[str, Any]) -> list[Row]:
    """Change all runs at once, or one by one if a natural key makes that fail.

    A transaction that waits for a key must not hold a key that the other one waits for.  One by one, the runs take
    their keys in order, as enqueue does; all at once, they take them in any order.
    """
    run_ids = parameters["run_ids"]
    try:
        with all_or_nothing(connection):
            return searched(connection, CHANGE_MANY[step.event], parameters)
    except Exception as error:
        if sqlstate_of(error) not in (UNIQUE_VIOLATION, DEADLOCK_DETECTED):
            raise
    if len(run_ids) == 1:
        return []
    ordered = [row["id"] for row in fetch_all(connection, BY_NATURAL_KEY, {"run_ids": run_ids})]
    return [row for run_id in ordered for row in _changed(connection, step, {**parameters, "run_ids": [run_id]})]


def _narrowed(action: Action, criteria: Filter, everything: bool) -> Filter:
    """Return the filter, limited to the statuses that the action can start from."""
    if criteria.leaves_all_open and not everything:
        raise FilterInvalid({"filter": "matches every run: narrow it, or send `all` to mean every run"})
    possible = action.statuses
    if others := [status for status in criteria.status if status not in possible]:
        event = action.value[0].event
        raise FilterInvalid(
            {"status": f"a {others[0]} run does not allow {event}; these statuses do: {', '.join(possible)}"}
        )
    return replace(criteria, status=criteria.status or possible)
