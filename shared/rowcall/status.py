"""The status machine of a run, as data.

A run is *live* (queued, running, failed) or *final* (succeeded, dead, cancelled).  TRANSITIONS lists all changes of
status.  Everything else about statuses is derived from it: the SQL guards in rowcall.queue, the CHECK constraints in
rowcall.schema, docs/status.md (which this module prints if it is run as a program), and the tests of all allowed and
forbidden transitions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The status of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Event(StrEnum):
    """What can happen to a run."""

    ENQUEUE = "enqueue"
    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    SUCCEED = "succeed"
    FAIL = "fail"
    GIVE_UP = "give up"
    RELEASE = "release"
    UNCLAIM = "unclaim"
    SNOOZE = "snooze"
    EXPIRE = "expire"
    CANCEL = "cancel"
    ASK_TO_CANCEL = "ask to cancel"
    CANCELLED = "cancelled"
    FORCE_CANCEL = "force cancel"
    RUN_NOW = "run now"
    RESCHEDULE = "reschedule"
    RETRY = "retry"


class Who(StrEnum):
    """Who can cause an event."""

    ANYONE = "API, app, scheduler"
    WORKER = "worker"
    OWNER = "owner"
    SWEEP = "sweep"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Transition:
    """One event: the statuses before and after it, who can cause it, its condition, and its effect on the row."""

    event: Event
    sources: tuple[Status, ...]
    targets: tuple[Status, ...]
    who: Who
    guard: str
    effect: str


FENCE = "id, lease_no, locked_by and status as claimed"
ASKED = "cancelled if requested"

TRANSITIONS = (
    Transition(
        Event.ENQUEUE,
        (),
        (Status.QUEUED,),
        Who.ANYONE,
        "key and occurrence are new",
        "run_at is as requested, by default now",
    ),
    Transition(
        Event.CLAIM,
        (Status.QUEUED, Status.FAILED),
        (Status.RUNNING,),
        Who.WORKER,
        "due, type known, queue not paused, attempts < max; one suspect at a time",
        "lease_no + 1, attempts + 1, lease set",
    ),
    Transition(
        Event.HEARTBEAT,
        (Status.RUNNING,),
        (Status.RUNNING,),
        Who.OWNER,
        FENCE,
        "extends locked_until, never shortens it",
    ),
    Transition(Event.SUCCEED, (Status.RUNNING,), (Status.SUCCEEDED,), Who.OWNER, FENCE, "result set, lease cleared"),
    Transition(
        Event.FAIL,
        (Status.RUNNING,),
        (Status.FAILED, Status.CANCELLED),
        Who.OWNER,
        f"{FENCE}; attempts < max",
        f"{ASKED}, else run_at = now + backoff; lease cleared",
    ),
    Transition(
        Event.GIVE_UP,
        (Status.RUNNING,),
        (Status.DEAD, Status.CANCELLED),
        Who.OWNER,
        f"{FENCE}; attempts = max, or the error is permanent",
        f"{ASKED}, else dead; error stored, lease cleared",
    ),
    Transition(
        Event.RELEASE,
        (Status.RUNNING,),
        (Status.QUEUED, Status.DEAD, Status.CANCELLED),
        Who.OWNER,
        FENCE,
        f"{ASKED}, dead if it was the last attempt; the attempt counts",
    ),
    Transition(
        Event.UNCLAIM,
        (Status.RUNNING,),
        (Status.QUEUED, Status.CANCELLED),
        Who.OWNER,
        f"{FENCE}; the handler has not started",
        f"{ASKED}; the attempt does not count; lease_no unchanged",
    ),
    Transition(
        Event.SNOOZE,
        (Status.RUNNING,),
        (Status.QUEUED, Status.CANCELLED),
        Who.OWNER,
        FENCE,
        f"{ASKED}, else run_at as the handler asked; the attempt does not count",
    ),
    Transition(
        Event.EXPIRE,
        (Status.RUNNING,),
        (Status.FAILED, Status.QUEUED, Status.DEAD, Status.CANCELLED),
        Who.SWEEP,
        "locked_until < now, lease_no as read",
        f"{ASKED}, dead if attempts = max, else due at once; a suspect for an hour or more; queued if it was handed"
        " over and nobody has begun it",
    ),
    Transition(
        Event.CANCEL,
        (Status.QUEUED, Status.FAILED),
        (Status.CANCELLED,),
        Who.OPERATOR,
        "status unchanged since the operator read it",
        "finished",
    ),
    Transition(
        Event.ASK_TO_CANCEL,
        (Status.RUNNING,),
        (Status.RUNNING,),
        Who.OPERATOR,
        "status unchanged since the operator read it",
        "cancel_requested_at set; the run is cancelled when the attempt ends, unless it succeeds",
    ),
    Transition(
        Event.CANCELLED,
        (Status.RUNNING,),
        (Status.CANCELLED,),
        Who.OWNER,
        f"{FENCE}; cancellation was requested",
        "finished, lease cleared",
    ),
    Transition(
        Event.FORCE_CANCEL,
        (Status.RUNNING,),
        (Status.CANCELLED,),
        Who.OPERATOR,
        "lease_no as read",
        "finished, lease cleared: the owner is fenced out",
    ),
    Transition(
        Event.RUN_NOW,
        (Status.QUEUED, Status.FAILED),
        (Status.QUEUED,),
        Who.OPERATOR,
        "status unchanged since the operator read it",
        "run_at = now, attempts unchanged",
    ),
    Transition(
        Event.RESCHEDULE,
        (Status.QUEUED, Status.FAILED),
        (Status.QUEUED,),
        Who.OPERATOR,
        "status unchanged since the operator read it",
        "run_at as the operator asked, attempts unchanged",
    ),
    Transition(
        Event.RETRY,
        (Status.DEAD, Status.CANCELLED),
        (Status.QUEUED,),
        Who.OPERATOR,
        "status unchanged since the operator read it, not pruned",
        "attempts = 0, run_at = now, error cleared, lease_no unchanged",
    ),
)

BY_EVENT = {transition.event: transition for transition in TRANSITIONS}

LIVE = (Status.QUEUED, Status.RUNNING, Status.FAILED)
FINAL = tuple(status for status in Status if status not in LIVE)

# The events that end a failed attempt.
FAILURES = (Event.FAIL, Event.GIVE_UP, Event.EXPIRE)


def allowed(status: Status, who: Who | None = None) -> tuple[Event, ...]:
    """Return the events that are possible in this status, optionally only those that `who` can cause."""
    return tuple(
        transition.event for transition in TRANSITIONS if status in transition.sources and who in {None, transition.who}
    )


def sql_list(words: Iterable[Status | Event]) -> str:
    """Format statuses or events as an SQL list, for IN."""
    return "(" + ", ".join(f"'{word}'" for word in words) + ")"


def sources_of(event: Event) -> str:
    """Return the SQL guard of an event: the statuses in which it is possible, as the right side of IN."""
    return sql_list(BY_EVENT[event].sources)


# How long a run holds its natural key, so that no other run of its type can have it: until expire_keys deletes the key,
# until the run is dead or cancelled, or until the run is finished.
UNIQUE_MODES = ("ever", "until_failed", "live")

# The CHECK constraints of job_runs on statuses.
CHECKS = {
    "status_known": f"status IN {sql_list(Status)}",
    "lease_iff_running": (
        f"(status = '{Status.RUNNING}') = (locked_by IS NOT NULL)"
        f" AND (status = '{Status.RUNNING}') = (locked_until IS NOT NULL)"
    ),
    "finished_iff_final": f"(status IN {sql_list(FINAL)}) = (finished_at IS NOT NULL)",
}


def mermaid() -> str:
    """Return the status machine as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for transition in TRANSITIONS:
        for source in transition.sources or ("[*]",):
            lines += [f"    {source} --> {target}: {transition.event}" for target in transition.targets]
    lines += [f"    {status} --> [*]" for status in FINAL]
    return "\n".join(lines)


def as_markdown() -> str:
    """Return the text of docs/status.md."""
    rows = [
        f"| {row.event} | {', '.join(row.sources) or '-'} | {', '.join(row.targets)} | {row.who}"
        f" | {row.guard} | {row.effect} |"
        for row in TRANSITIONS
    ]
    return "\n".join(
        [
            "# The status of a run",
            "",
            "Generated by `make docs` from `shared/rowcall/status.py`.",
            "",
            f"Live: {', '.join(LIVE)} (failed: an attempt failed, and another will follow).",
            f"Final: {', '.join(FINAL)} (dead: failed for good; an operator may retry it).",
            "",
            "```mermaid",
            mermaid(),
            "```",
            "",
            "| event | from | to | who | guard | effect on the row |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
