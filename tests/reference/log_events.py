"""The log events: name, level and fields as the code logs them, and what each means."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from rowcall.base.logs import LogEvent
from rowcall_worker.runtime.completer import LOG_EVENTS
from tests.reference.markdown import head, table
from tests.support.processes import ROOT

PACKAGES = ("shared/rowcall", "api/rowcall_api", "worker/rowcall_worker")

# The access log's level depends on the status.
ANY_LEVEL = "info, warning"

# Parameters of the logger that have another name in the line.
FIELDS = {"exc_info": "exception"}

MEANINGS = {
    LogEvent.API_STARTED: "The server accepts requests.",
    LogEvent.API_ANSWERED: "The access log: one line for each request, with its `route` if there is one.",
    LogEvent.API_REQUEST_FAILED: "A request failed with 500, or the database read behind `/v1/events` failed; see"
    " the exception.",
    LogEvent.DATABASE_LOST: "The database cannot be reached, or refuses to write, for example because its disk is full;"
    " the connection is retried until it succeeds.",
    LogEvent.DATABASE_BACK: "The database can be reached again, and accepts writes.",
    LogEvent.STANDBY_LOST: "The standby of `ROWCALL_READ_URL` does not answer, is too old, or is no standby of this"
    " database, as `reason` says; the leader answers reads instead.",
    LogEvent.STANDBY_BACK: "The standby answers reads again.",
    LogEvent.DATABASE_LOCKED: "Another transaction's lock, such as one on a table, has stopped a thread of the worker"
    " for three seconds; it goes on when the lock is released.",
    LogEvent.DATABASE_REFUSES: "For three seconds, the database has refused each try of a thread of the worker with an"
    " error that usually passes, such as a deadlock; perhaps a trigger raises it. The thread keeps trying.",
    LogEvent.BATCH_ENQUEUED: "A batch of runs was enqueued through the API; the line says how many were new.",
    LogEvent.RUN_ENQUEUED: "A run was enqueued through the API, or the request was a replay.",
    LogEvent.RUN_CANCELLED: "A run stopped because an operator asked to cancel it.",
    LogEvent.RUN_FAILED: "An attempt failed, and another one follows.",
    LogEvent.RUN_DEAD: "A run failed for good; an operator can retry it.",
    LogEvent.RUN_SNOOZED: "The handler asked to wait; the attempt does not count.",
    LogEvent.RUN_RELEASED: "The worker stops and gives back a run whose handler has started; the attempt counts.",
    LogEvent.RUN_LEFT: "The worker could not record how an attempt ended, or give back a run; the run's lease"
    " will expire.",
    LogEvent.RUN_LOG_REFUSED: "The lines that handlers logged could not be stored; see the error. The runs themselves"
    " are not affected.",
    LogEvent.ALERTS_REFUSED: "Alerts could not be checked; see the error. This worker tries again after five minutes.",
    LogEvent.INCIDENT_OPENED: "An alert fired; its receivers get a message.",
    LogEvent.INCIDENT_ENDED: "An alert's condition has not held for five minutes; its receivers get a message.",
    LogEvent.PINGS_REFUSED: "Pings could not be enqueued; see the error. This worker tries again after five minutes.",
    LogEvent.PING_FAILED: "A service that expects pings could not be reached, or refused one; see the error.",
    LogEvent.COUNTS_REFUSED: "The counts for charts could not be stored; see the error. This worker stops counting.",
    LogEvent.RUN_RETURNED: "The result of a claim was lost: the worker gives back its run; the attempt does not count.",
    LogEvent.MESSAGE_LOST: "No consumer began a run that was handed over: its message was lost, or waited for too long."
    " The run is handed over again; the attempt does not count.",
    LogEvent.MESSAGE_REFUSED: "A message for a run that was handed over began nothing: it came twice or too late, or"
    " the run's type is not handed over here. `reason` says which.",
    LogEvent.RUNS_UNSERVED: "`worker once` ran without ROWCALL_APP, and no live worker serves these due runs.",
    LogEvent.EFFECT_UNRECORDED: "An effect happened, but its record could not be written; keep the reference.",
    LogEvent.HANDLER_FAILED_LATE: "The handler raised an error after `run.transaction()` had committed the success.",
    LogEvent.LEASE_EXPIRED: "A lease ended without a heartbeat: its worker died, hung or lost its connection.",
    LogEvent.LEASE_LOST: "This worker no longer holds the lease; its writes are refused.",
    LogEvent.SCHEDULE_BROKEN: "The worker cannot process the next nominal time of a definition, because its content is"
    " invalid or its job type's code fails; other definitions continue.",
    LogEvent.SCHEDULE_RESUMED: "The first tick after a gap in which no worker ticked; the gap began at `since`.",
    LogEvent.SCHEDULE_TICKED: "A tick processed nominal times; `enqueued`, `skipped` and `missed` say how many.",
    LogEvent.TRACING_PROBLEM: "OpenTelemetry reports a problem, such as an unreachable collector; runs are not"
    " affected. Problems of each of its modules are logged at most once every five minutes.",
    LogEvent.TRACES_UNAVAILABLE: "A collector is set, but the packages of the extra `otel` are missing or refuse an"
    " `OTEL_` variable; `remedy` says which.",
    LogEvent.METRICS_SERVED: "The worker serves its metrics at this URL.",
    LogEvent.SCHEMA_CHANGED: "The worker stops because the schema no longer fits its code, or is gone; see the error.",
    LogEvent.WORKER_STARTED: "A worker process begins to claim.",
    LogEvent.WORKER_STOPPING: "The worker is stopping; running handlers may finish within the grace period.",
    LogEvent.WORKER_STOPPED: "The worker has ended; `reason` is a signal, an error, or why `once` ended. The line"
    " also has `claimed`, `succeeded`, `failed`, `dead`, `handed_over` and `seconds`.",
    LogEvent.WORKER_ENDED: "A second signal ended the worker at once; these runs stay running until their leases"
    " expire.",
}


def page() -> str:
    """Return docs/reference/log-events.md."""
    levels, fields = logged()
    rows = (
        (f"`{event}`", ", ".join(sorted(levels[event.name])), ", ".join(sorted(fields[event.name])), MEANINGS[event])
        for event in LogEvent
    )
    lines = head("Log events", "the calls in the code")
    lines += [
        "Each line has an event with its fields: as text on a terminal, as JSON elsewhere (`ROWCALL_LOG_FORMAT`). A",
        "line about a run has its `run_id` and `lease_no`, a line about a request its `request_id`. Filter by the",
        "event, not by other text in the line.",
        "",
        *table(("event", "level", "fields", "meaning"), rows),
    ]
    return "\n".join(lines).rstrip() + "\n"


def logged() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the levels and the fields of each event, by its name in LogEvent."""
    levels: dict[str, set[str]] = defaultdict(set)
    fields: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for call, names in calls(ast.parse(path.read_text())):
                level = call.func.attr if isinstance(call.func, ast.Attribute) else ANY_LEVEL
                for name in names:
                    levels[name].add(level)
                    fields[name] |= {f"`{FIELDS.get(one.arg, one.arg)}`" for one in call.keywords if one.arg}
    return levels, fields


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, list[str]]]:
    """Yield each call that logs, with the names of the events that it may log."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if (
                isinstance(first, ast.Subscript)
                and isinstance(first.value, ast.Name)
                and first.value.id == "LOG_EVENTS"
            ):
                yield node, [LogEvent(event).name for event in LOG_EVENTS.values()]
            elif isinstance(first, ast.Attribute) and ast.unparse(first.value) == "LogEvent":
                yield node, [first.attr]
