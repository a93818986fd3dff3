"""What Rowcall logs, and how a line looks: JSON for programs, text for a person at a terminal.

Every event's name stands in LogEvent; code emits an event with fields and never words a line itself.
Nothing of what a line says may be a secret: `redacted` goes over every value.
Every line of a request carries its id (api.request_log binds it), and every line of a handler its run and lease (RUN).
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, TextIO

import structlog

from rowcall.base.redaction import redacted
from rowcall.base.settings import Settings


class LogEvent(StrEnum):
    """The names of all log lines."""

    API_STARTED = "api started"
    API_REFUSED = "api refused a request"
    API_BROKE = "api broke on a request"
    DATABASE_LOST = "database lost"
    DATABASE_BACK = "database back"
    RUN_ENQUEUED = "run enqueued"
    RUN_CANCELLED = "run cancelled"
    RUN_FAILED = "run failed"
    RUN_DEAD = "run dead"
    RUN_SNOOZED = "run snoozed"
    RUN_RELEASED = "run released"
    EFFECT_UNRECORDED = "effect happened and is not recorded"
    LEASE_EXPIRED = "lease expired"
    LEASE_LOST = "lease lost"
    SCHEDULE_BROKEN = "schedule broken"
    SCHEDULE_SLEPT = "schedule slept"
    SCHEDULE_TICKED = "schedule ticked"
    WORKER_STARTED = "worker started"
    WORKER_STOPPING = "worker stopping"
    WORKER_STOPPED = "worker stopped"


# The run that this thread works on, and its lease.  A variable of its own, because binding costs more than a small
# handler does: it is set for every run, and read only when a line is written.
RUN: ContextVar[tuple[int, int] | None] = ContextVar("run", default=None)


def configure(settings: Settings, stream: TextIO | None = None) -> None:
    """Set the form and level of all further log lines of this process.  Lines go to standard error."""
    stream = stream or sys.stderr
    as_text = settings.log_format == "text" or (settings.log_format == "auto" and stream.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), pad_event_to=24, exception_formatter=structlog.dev.plain_traceback
        )
        if as_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_run,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(settings.log_level.upper())),
        logger_factory=structlog.PrintLoggerFactory(stream),
        # Tests and `rowcall up` configure more than once, which a cached logger would not notice.
        cache_logger_on_first_use=False,
    )


def _add_run(_: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Name the run that the line was written in."""
    run = RUN.get()
    if run is not None:
        line.setdefault("run_id", run[0])
        line.setdefault("lease_no", run[1])
    return line


def _redact(_: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Take what must not be shown out of every value."""
    return {name: _shown(value) for name, value in line.items()}


def _shown(value: Any) -> Any:
    """The value as it may be written; what is not plain data is written as Python would."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {_shown(name): _shown(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(inner) for inner in value]
    return redacted(value if isinstance(value, str) else repr(value))


def log() -> structlog.typing.FilteringBoundLogger:
    """The logger, with what the current context has bound."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
