"""Many at once: retry or cancel what a filter matches, each run through the guard of the same event done to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, fetch_all
from rowcall.base.errors import FilterInvalid
from rowcall.queue.cancel import ASKED, CANCELLED_AT_ONCE, RUNS, WAITS
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.operate import AUDITED, RETRIABLE, RETRIED
from rowcall.queue.views.filters import MATCHES, Filter
from rowcall.queue.views.lists import SCANNED_MOST, SCANS, page_of, page_sql, scan_for, searched
from rowcall.queue.wake import WAKE_WORKERS
from rowcall.status import BY_EVENT, Event, Status

CHANGED_MOST = 1000


class Step(NamedTuple):
    """An event, which runs it can happen to, and what it changes."""

    event: Event
    guard: str
    changes: str


class Action(Enum):
    """What can be done to many.  Each run has one of the steps done to it: the statuses that they start from differ."""

    RETRY = (Step(Event.RETRY, RETRIABLE, RETRIED),)
    # Who was asked already need not be asked again.
    CANCEL = (
        Step(Event.CANCEL, WAITS, CANCELLED_AT_ONCE),
        Step(Event.ASK_TO_CANCEL, f"{RUNS} AND cancel_requested_at IS NULL", ASKED),
    )

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses that it can start from."""
        return tuple(status for step in self.value for status in BY_EVENT[step.event].sources)

    @property
    def guard(self) -> str:
        """Which runs it can happen to."""
        return "(" + " OR ".join(f"({step.guard})" for step in self.value) + ")"


@dataclass(frozen=True)
class Bulk:
    """How many were met, which of them were changed (in a dry run: would be), and how many were not.

    `next` is where the next call goes on, None where everything was met.
    """

    matched: int
    ids: list[int]
    refused: int
    next: str | None
    dry_run: bool


def change_many(step: Step) -> str:
    """Do it to those of the runs that still match and are locked by nobody, and tell the audit of each."""
    before, after = (
        "jsonb_build_object(" + ", ".join(f"'{name}', {row}.{name}" for name in AUDITED) + ")"
        for row in ("met", "changed")
    )
    return f"""{BY_INDEX}
WITH met AS MATERIALIZED (
    SELECT * FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s::bigint[]) AND {step.guard} AND {MATCHES}
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE rowcall.job_runs SET {step.changes} WHERE id = ANY(ARRAY(SELECT id FROM met)) RETURNING *
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after, request_id)
    SELECT %(who)s, '{step.event}', 'run', changed.id, {before}, {after}, %(request_id)s
    FROM changed JOIN met ON met.id = changed.id ORDER BY changed.id
)
SELECT id, status FROM changed
"""


# (Action, scan) -> the page of runs that it can be done to.
PAGES = {
    (action.name.lower(), scan.name): page_sql(scan, "page.id, page.created_at", action.guard)
    for action in Action
    for scan in SCANS
}

# Event -> what does it to many runs.
CHANGE_MANY = {step.event: change_many(step) for action in Action for step in action.value}


def bulk(
    connection: Connection,
    action: Action,
    wanted: Filter,
    operator: Operator,
    *,
    everything: bool = False,
    limit: int = CHANGED_MOST,
    cursor: str | None = None,
    dry_run: bool = False,
    most: int = SCANNED_MOST,
) -> Bulk:
    """Do it to the newest runs that match, `limit` of them at the most; what others hold locked is passed over."""
    narrowed = _narrowed(action, wanted, everything)
    sql = PAGES[action.name.lower(), scan_for(narrowed).name]
    page = page_of(connection, sql, narrowed, limit, cursor, most)
    met = [run["id"] for run in page.runs]
    if dry_run:
        return Bulk(len(met), met, 0, page.next, dry_run)
    changed = changed_of(connection, action, met, narrowed, operator)
    return Bulk(len(met), [run_id for run_id in met if run_id in changed], len(met) - len(changed), page.next, dry_run)


def changed_of(
    connection: Connection, action: Action, run_ids: Sequence[int], wanted: Filter, operator: Operator
) -> dict[int, Status]:
    """Do it to these runs, as far as they still match: the status now of each that was changed."""
    known = {**wanted.parameters(), "run_ids": list(run_ids), "who": operator.who, "request_id": operator.request_id}
    rows = [row for step in action.value for row in searched(connection, CHANGE_MANY[step.event], known)]
    changed = {row["id"]: Status(row["status"]) for row in rows}
    if Status.QUEUED in changed.values():
        fetch_all(connection, WAKE_WORKERS)
    return changed


def _narrowed(action: Action, wanted: Filter, everything: bool) -> Filter:
    """What is wanted, of the statuses that it can happen to."""
    if wanted.leaves_all_open and not everything:
        raise FilterInvalid({"filter": "leaves everything open: say which runs are meant, or `all` if all of them are"})
    possible = action.statuses
    if others := [status for status in wanted.status if status not in possible]:
        event = action.value[0].event
        raise FilterInvalid({"status": f"no {others[0]} run admits {event}; those that do: {', '.join(possible)}"})
    return replace(wanted, status=wanted.status or possible)
