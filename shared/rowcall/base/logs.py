"""Logging in two formats: JSON for programs, and text for people at a terminal.

LogEvent lists all events; code emits an event with fields and never writes a message itself.
`redacted` removes secrets from every value.
Lines logged during a request have its id (REQUEST_ID), and lines logged by a handler have its run and lease (RUN).
Not structlog: its import takes a third of the CPU time of a worker's start, and cron starts a worker every minute.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Any, TextIO

from rowcall.base.redaction import BLANK, SEARCHED_CHARACTERS, names_a_secret, redacted
from rowcall.base.settings import Settings


class LogEvent(StrEnum):
    """The names of all log lines."""

    API_STARTED = "api started"
    API_ANSWERED = "api answered"
    API_REQUEST_FAILED = "api request failed"
    DATABASE_LOST = "database lost"
    DATABASE_BACK = "database back"
    STANDBY_LOST = "standby lost"
    STANDBY_BACK = "standby back"
    DATABASE_LOCKED = "database locked"
    DATABASE_REFUSES = "database refuses statements"
    RUN_ENQUEUED = "run enqueued"
    BATCH_ENQUEUED = "batch enqueued"
    RUN_CANCELLED = "run cancelled"
    RUN_FAILED = "run failed"
    RUN_DEAD = "run dead"
    RUN_SNOOZED = "run snoozed"
    RUN_RELEASED = "run released"
    MESSAGE_LOST = "message lost"
    MESSAGE_REFUSED = "message refused"
    RUN_LEFT = "run left until its lease expires"
    RUN_LOG_REFUSED = "run log refused by the database"
    ALERTS_REFUSED = "alerts refused by the database"
    INCIDENT_OPENED = "incident opened"
    INCIDENT_ENDED = "incident ended"
    PINGS_REFUSED = "pings refused by the database"
    PING_FAILED = "ping failed"
    COUNTS_REFUSED = "counts refused by the database"
    RUN_RETURNED = "run returned"
    RUNS_UNSERVED = "due runs unserved"
    EFFECT_UNRECORDED = "effect happened but was not recorded"
    HANDLER_FAILED_LATE = "handler failed after its run had succeeded"
    LEASE_EXPIRED = "lease expired"
    LEASE_LOST = "lease lost"
    SCHEDULE_BROKEN = "schedule broken"
    SCHEDULE_RESUMED = "schedule resumed"
    SCHEDULE_TICKED = "schedule ticked"
    TRACING_PROBLEM = "tracing problem"
    TRACES_UNAVAILABLE = "traces unavailable"
    METRICS_SERVED = "metrics served"
    SCHEMA_CHANGED = "schema changed"
    WORKER_STARTED = "worker started"
    WORKER_STOPPING = "worker stopping"
    WORKER_STOPPED = "worker stopped"
    WORKER_ENDED = "worker ended at once"


# The id and the lease_no of the run that this thread works on.
RUN: ContextVar[tuple[int, int] | None] = ContextVar("run", default=None)
# The request that this thread answers.
REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)

LEVELS = ("debug", "info", "warning", "error")
COLOURS = {"warning": "\033[33m", "error": "\033[31m"}
PLAIN = "\033[0m"
# Pads the event's name, so that the fields line up.
EVENT_WIDTH = 24

# A secret that is cut in two is not recognized, so this many characters next to the cut are removed too.
DIVIDED_CHARACTERS = 1000
ELLIPSIS = "…"

# Data nested deeper than this is shown as its repr, because it may contain itself.
DEPTH_MOST = 20


@dataclass(frozen=True)
class Log:
    """A logger with a stream, a level and a format; without a stream, it writes to standard error."""

    stream: TextIO | None = None
    level: str = "info"
    form: str = "auto"
    fields: Mapping[str, object] = field(default_factory=dict)

    def with_fields(self, **fields: object) -> Log:
        """Return a logger that adds these fields to all its lines."""
        return replace(self, fields={**self.fields, **fields})

    def debug(self, event: str, /, **fields: object) -> None:
        """Log at level debug."""
        self.write("debug", event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Log at level info."""
        self.write("info", event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Log at level warning."""
        self.write("warning", event, fields)

    def error(self, event: str, /, *, exc_info: BaseException | bool = False, **fields: object) -> None:
        """Log at level error; `exc_info` is an exception, or True for the current one."""
        error = sys.exception() if exc_info is True else exc_info
        if isinstance(error, BaseException):
            fields["exception"] = traceback_of(error)
        self.write("error", event, fields)

    def write(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        """Log at this level."""
        # sys.stderr is None in a process that was started without standard error.
        stream: TextIO | None = self.stream or sys.stderr
        if stream is None or LEVELS.index(level) < LEVELS.index(self.level):
            return
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        always = {"timestamp": now, "level": level, "event": _shown(str(event))}
        # These come first, and a handler's field cannot replace them.
        told = {**_context(), **self.fields, **fields}
        line = {**always, **_fields(told, 0), **always}
        # A full disk or a closed pipe must not stop the work.
        with suppress(OSError, ValueError):
            as_text = self.form == "text" or (self.form == "auto" and stream.isatty())
            _write(stream, (_text(line, coloured=_has_colours(stream)) if as_text else json.dumps(line)) + "\n")


_log = Log()


def configure(settings: Settings, stream: TextIO | None = None) -> None:
    """Set the format and level of this process's log."""
    use(Log(stream, settings.log_level, settings.log_format))


def use(log: Log) -> None:
    """Make this the logger of the process."""
    global _log
    _log = log


def log() -> Log:
    """Return the process's logger; it adds the fields of this thread's run and request."""
    return _log


def _write(stream: TextIO, line: str) -> None:
    """Write the line in one piece, bypassing the buffer of a stream that has a file descriptor.

    Python aborts at exit if a daemon thread that it has just stopped still holds the lock of that buffer.
    """
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):
        stream.write(line)
        stream.flush()
    else:
        rest = line.encode(stream.encoding or "utf-8", "backslashreplace")
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _context() -> dict[str, object]:
    """Return the fields of this thread's run and request."""
    run, request_id = RUN.get(), REQUEST_ID.get()
    return {
        **({} if run is None else {"run_id": run[0], "lease_no": run[1]}),
        **({} if request_id is None else {"request_id": request_id}),
    }


def traceback_of(error: BaseException) -> str:
    """Format the traceback: only the end of a very long one, and only the first sentence of PostgreSQL's messages.

    The rest of such a message quotes statements and rows.
    """
    trace = "".join(traceback.format_exception(error)).rstrip()
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in causes:
        sentence = getattr(getattr(cause, "diag", None), "message_primary", None)
        if sentence:
            trace = trace.replace(str(cause).rstrip(), sentence)
    if len(trace) <= SEARCHED_CHARACTERS:
        return trace
    return ELLIPSIS + redacted(trace[-SEARCHED_CHARACTERS:])[DIVIDED_CHARACTERS:]


def _shown(value: object, depth: int = 0) -> Any:
    """Convert the value for the log; anything but plain data becomes its repr."""
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, dict) and depth < DEPTH_MOST:
        return _fields(value, depth + 1)
    if isinstance(value, (list, tuple)) and depth < DEPTH_MOST:
        return [_shown(inner, depth + 1) for inner in value]
    text = str(value) if isinstance(value, str) else repr(value)
    if len(text) <= SEARCHED_CHARACTERS:
        return redacted(text)
    return redacted(text[:SEARCHED_CHARACTERS])[:-DIVIDED_CHARACTERS] + ELLIPSIS


def _fields(fields: Mapping[Any, object], depth: int) -> dict[str, Any]:
    """Convert named values; hide a value whose name says that it is a secret."""
    named = ((str(_shown(name)), value) for name, value in fields.items())
    return {name: BLANK if value and names_a_secret(name) else _shown(value, depth) for name, value in named}


def _has_colours(stream: TextIO) -> bool:
    """Whether this is a terminal with colours, and its user wants them (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _text(line: dict[str, Any], *, coloured: bool) -> str:
    """Format a line as text, followed by the other lines of a multi-line event, and by its traceback."""
    told = dict(line)
    timestamp, level, event = (told.pop(name) for name in ("timestamp", "level", "event"))
    exception = told.pop("exception", None)
    colour, plain = (COLOURS.get(level, ""), PLAIN) if coloured and level in COLOURS else ("", "")
    fields = " ".join(f"{name}={word(value)}" for name, value in told.items())
    first, *rest = _printable(event) or [""]
    text = f"{timestamp} {colour}{level:<7}{plain} {first:<{EVENT_WIDTH}} {fields}".rstrip()
    below = [] if exception is None else _printable(str(exception))
    return "\n".join([text, *(f"    {line}" for line in rest), *below])


def _printable(text: str) -> list[str]:
    """Return the lines of a text; a character that would control the terminal is escaped."""
    return [
        "".join(one if one.isprintable() else repr(one)[1:-1] for one in line.expandtabs(4))
        for line in text.splitlines()
    ]


def word(value: object) -> str:
    """Format the value, quoted if it contains separators."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)
