"""The actions of operations: which runs each can change, and how, with the guards that apply to a single run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from rowcall.base.database import Row
from rowcall.base.errors import FilterInvalid
from rowcall.job_types.housekeeping import CARRY_OUT_OPERATION
from rowcall.queue.cancel import ASKED, CANCELLED_AT_ONCE, IS_RUNNING, IS_WAITING, cancel_any
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.operate import (
    AUDITED,
    CAN_RESCHEDULE,
    CAN_RUN_NOW,
    MADE_DUE,
    RESCHEDULED,
    RETRIABLE,
    RETRIED,
    reschedule,
    retry,
    run_now,
)
from rowcall.queue.views.filters import MATCHES, Filter
from rowcall.queue.views.lists import SCANS, page_sql
from rowcall.status import BY_EVENT, LIVE, Event, Status


class Step(NamedTuple):
    """An event, the runs that it applies to, and its changes."""

    event: Event
    guard: str
    changes: str


class Action(Enum):
    """What an operation does to its runs.  Its steps start from different statuses, so a run takes at most one."""

    RETRY = (Step(Event.RETRY, RETRIABLE, RETRIED),)
    # Do not ask a worker twice.
    CANCEL = (
        Step(Event.CANCEL, IS_WAITING, CANCELLED_AT_ONCE),
        Step(Event.ASK_TO_CANCEL, f"{IS_RUNNING} AND cancel_requested_at IS NULL", ASKED),
    )
    # A run that is due already keeps its place.
    RUN_NOW = (Step(Event.RUN_NOW, f"{CAN_RUN_NOW} AND run_at > now()", MADE_DUE),)
    RESCHEDULE = (Step(Event.RESCHEDULE, CAN_RESCHEDULE, RESCHEDULED),)

    @property
    def word(self) -> str:
        """Return the name of the action, as in requests and in the table."""
        return self.name.lower()

    @property
    def statuses(self) -> tuple[Status, ...]:
        """Return the statuses that the action can start from."""
        return tuple(status for step in self.value for status in BY_EVENT[step.event].sources)

    @property
    def is_for_live_runs(self) -> bool:
        """Whether the action changes only runs that have not ended."""
        return {*self.statuses} <= {*LIVE}


# Action -> the function that changes a single run.
CHANGE_ONE: dict[Action, Callable[..., Row]] = {
    Action.RETRY: retry,
    Action.CANCEL: cancel_any,
    Action.RUN_NOW: run_now,
    Action.RESCHEDULE: reschedule,
}


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


# What the statuses of the filter leave open: the rest of the steps' guards.  An operation does not change its own run.
IS_MEANT = f"""job_type <> '{CARRY_OUT_OPERATION.name}'
    AND (%(action)s <> 'retry' OR pruned_at IS NULL)
    AND (%(action)s <> 'cancel' OR status <> '{Status.RUNNING}' OR cancel_requested_at IS NULL)
    AND (%(action)s <> 'run_now' OR run_at > now())"""

# Name of a scan -> a page of the runs that an action can change.
PAGES = {scan.name: page_sql(scan, "id, created_at", IS_MEANT, "FROM rowcall.job_runs") for scan in SCANS}

# Event -> the statement that changes many runs.
CHANGE_MANY = {step.event: change_many(step) for action in Action for step in action.value}


def narrowed(action: Action, criteria: Filter) -> Filter:
    """Return the filter, limited to the statuses that the action can start from."""
    possible = action.statuses
    if others := [status for status in criteria.status if status not in possible]:
        event = action.value[0].event
        raise FilterInvalid(
            {"status": f"a {others[0]} run does not allow {event}; these statuses do: {', '.join(possible)}"}
        )
    return replace(criteria, status=criteria.status or possible)
