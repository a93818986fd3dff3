"""What a message says about each alert: a title, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rowcall.alerts.conditions import FAILED_LEAST, Alert
from rowcall.base.database import Row

# A message contains the beginning of an error; the page and the command show the rest.
ERROR_CHARACTERS = 300

NEWER = "A newer version of Rowcall opened this incident; see the documentation of that version."


class Told(NamedTuple):
    """A title, and the lines below it."""

    title: str
    lines: Sequence[str]


class Incident(NamedTuple):
    """An incident, those of its runs that are still dead, and the address of the page."""

    subject: str
    details: Mapping[str, Any]
    runs: Sequence[Row]
    page: str | None


def opened(alert: str, incident: Incident) -> Told:
    """Say what has begun; newer code may have opened an incident of an alert that this code does not know."""
    return OPENED[alert](incident) if alert in OPENED else Told(f"{alert} of {incident.subject}", [NEWER])


def opened_title(alert: str, subject: str, details: Mapping[str, Any]) -> str:
    """Say in a few words what began."""
    return opened(alert, Incident(subject, details, [], None)).title


def ended(alert: str, incident: Incident) -> str:
    """Say what ended."""
    return ENDED[alert](incident) if alert in ENDED else f"{alert} of {incident.subject}"


def _time(text: str) -> str:
    """Format a time from the details like the other times in the message."""
    return datetime.fromisoformat(text).isoformat(sep=" ", timespec="seconds")


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _died(incident: Incident) -> Told:
    number, job_type = incident.details["runs"], incident.subject
    lines = [line for run in incident.runs for line in _of_run(run, incident.page)]
    filters = f"--status dead --type {job_type}"
    lines.append(
        "You get no message about further deaths until this incident ends: when all of these runs were retried, or no"
        " run has died for an hour."
    )
    if number > len(incident.runs):
        lines += [
            f"To list all: rowcall runs list {filters}",
            f"To retry one first, and then the others: rowcall runs retry {filters} --canary",
        ]
    return Told(f"{_count(number, 'run')} of {job_type} died", lines)


def _of_run(run: Row, page: str | None) -> list[str]:
    """The error of a run, its page, and the command that retries it."""
    error = " ".join((run["last_error"] or "").split())
    error = error if len(error) <= ERROR_CHARACTERS else f"{error[:ERROR_CHARACTERS]}..."
    kind = f"{run['error_type']}: " if run["error_type"] else ""
    shown = [f"{page}/runs/{run['id']}"] if page else [f"rowcall runs show {run['id']}"]
    return [f"Run {run['id']}: {kind}{error}", *(f"  {line}" for line in (*shown, f"rowcall runs retry {run['id']}"))]


def _overdue(incident: Incident) -> Told:
    queue, found = incident.subject, incident.details
    lines = [f"Run {found['run_id']} of {found['job_type']} has been due since {_time(found['due_since'])}."]
    if found.get("handed_over"):  # an incident of an older version has no such detail
        lines.append(
            "It was handed over, and no consumer has begun it: check that Celery's workers run, serve its queue and"
            " know its task (rowcall doctor)."
        )
    elif found["paused"]:
        lines.append(f"The queue is paused; to resume it: rowcall queues resume {queue}")
    elif found["closed"]:
        lines.append(f"The queue is limited to 0 running runs; to lift the limit: rowcall queues limit {queue} --none")
    lines.append(f"To see why it has not started: rowcall runs explain {found['run_id']}")
    if incident.page:
        lines.append(f"{incident.page}/runs/{found['run_id']}")
    return Told(f"due runs of queue {queue} are not starting", lines)


def _unserved(incident: Incident) -> Told:
    found = incident.details
    more = found["queues"] - len(found["first_queues"])
    queues = ", ".join(found["first_queues"]) + (f" and {_count(more, 'more queue')}" if more else "")
    counts = [
        _count(found["waiting"], "due run") if found["waiting"] else "",
        _count(found["abandoned"], "run with an expired lease", "runs with an expired lease")
        if found["abandoned"]
        else "",
    ]
    return Told(
        f"no worker serves {incident.subject}",
        [
            f"In {queues}: {' and '.join(filter(None, counts))}.",
            "Start a worker whose ROWCALL_APP has this type, and check its --queues and --types: rowcall workers",
        ],
    )


def _failing(incident: Incident) -> Told:
    found = incident.details
    return Told(
        f"{found['failed']} of the last {found['ended']} attempts of {incident.subject} failed",
        ["This is over the last 15 minutes. To list the errors: rowcall failures"],
    )


def _unknown(incident: Incident) -> Told:
    return Told(
        f"{_count(incident.details['effects'], 'effect')} of kind {incident.subject} may or may not have happened",
        [
            "Find out what happened, and record it: rowcall effects list --state unknown, then rowcall effects resolve",
            *([f"{incident.page}/effects?state=unknown"] if incident.page else []),
        ],
    )


def _silent(incident: Incident) -> Told:
    return Told(
        "no worker evaluated the schedules",
        [
            f"The first worker to tick since {_time(incident.details['since'])} found this.",
            "Check that cron or a service manager starts workers; rowcall doctor helps.",
        ],
    )


def _bloated(incident: Incident) -> Told:
    found = incident.details
    return Told(
        f"vacuum is not keeping up with rowcall.{incident.subject}",
        [
            f"{found['dead']:,} dead rows, {found['live']:,} live rows: claims get slower.",
            "To see whether something holds vacuum back: rowcall doctor",
        ],
    )


def _held_back(incident: Incident) -> Told:
    found = incident.details
    since = f"for {found['since']}" if found["since"] else "for a million transactions"
    query = f" Its last query began at {_time(found['query_started_at'])}." if found["query_started_at"] else ""
    return Told(
        f"{incident.subject} holds vacuum back",
        [f"It has done so {since}: dead rows stay, and claims get slower.{query}", f"Remedy: {found['remedy']}"],
    )


def _test(incident: Incident) -> Told:
    return Told(
        f"a test, requested by {incident.subject}",
        ["Nothing is wrong: someone ran `rowcall alerts test`. You get another message when it ends, in five minutes."],
    )


OPENED: Mapping[str, Callable[[Incident], Told]] = {
    Alert.RUN_DIED: _died,
    Alert.RUN_OVERDUE: _overdue,
    Alert.TYPE_UNSERVED: _unserved,
    Alert.ATTEMPTS_FAILING: _failing,
    Alert.EFFECT_UNKNOWN: _unknown,
    Alert.TICK_SILENT: _silent,
    Alert.TABLE_BLOATED: _bloated,
    Alert.VACUUM_HELD_BACK: _held_back,
    Alert.TEST: _test,
}

ENDED: Mapping[str, Callable[[Incident], str]] = {
    Alert.RUN_DIED: lambda one: f"no run of {one.subject} that died within the last hour is still dead",
    Alert.RUN_OVERDUE: lambda one: f"due runs of queue {one.subject} are starting again",
    Alert.TYPE_UNSERVED: lambda one: f"no waiting run of {one.subject} lacks a worker",
    Alert.ATTEMPTS_FAILING: lambda one: (
        f"fewer than half of the attempts of {one.subject} fail, or fewer than {FAILED_LEAST} of them"
    ),
    Alert.EFFECT_UNKNOWN: lambda one: f"no effect of kind {one.subject} has an unknown outcome",
    Alert.TICK_SILENT: lambda _: "workers evaluate the schedules again",
    Alert.TABLE_BLOATED: lambda one: f"vacuum keeps up with rowcall.{one.subject} again",
    Alert.VACUUM_HELD_BACK: lambda one: f"{one.subject} no longer holds vacuum back",
    Alert.TEST: lambda one: f"a test, requested by {one.subject}",
}
