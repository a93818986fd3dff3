"""`run.log`: a standard logger whose lines are kept with the run, and the lines that are not written yet."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall.base.redaction import SEARCHED_CHARACTERS, fit_to_keep
from rowcall.queue import LogLine
from rowcall.queue.run_log import BYTES_MOST, LINES_MOST

# A longer message ends with an ellipsis, and a longer traceback keeps only its end.
MESSAGE_CHARACTERS = 2000
TRACEBACK_CHARACTERS = 6000

# The attribute of a log record that has the fields of its line.
FIELDS = "rowcall_fields"

# The standard levels, the highest first, and those of Rowcall's log.
LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))


class LogBuffer:
    """The newest lines of an attempt that are not written yet, numbered within the lease."""

    __slots__ = ("_bytes", "_count", "_lines", "_lock", "_process")

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque()
        self._bytes = self._count = 0
        self._lock = threading.Lock()
        # A process that the handler forked has a copy of the buffer, whose lines nobody writes.
        self._process = os.getpid()

    def add(self, level: str, text: str) -> None:
        """Number a line, and keep it."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._count += 1
            line = LogLine(self._count, elapsed(), level, text)
            self._keep(line)
            self.keeps(line)

    def put(self, line: LogLine) -> None:
        """Keep a line that the child process of the run has numbered."""
        with self._lock:
            self._keep(line)

    def keeps(self, line: LogLine) -> None:
        """Called for each new line."""

    def _keep(self, line: LogLine) -> None:
        self._lines.append(line)
        self._bytes += len(line.text.encode())
        while len(self._lines) > LINES_MOST or self._bytes > BYTES_MOST:
            self._bytes -= len(self._lines.popleft().text.encode())

    @property
    def unwritten(self) -> list[LogLine]:
        """The lines that are still to be written."""
        with self._lock:
            return list(self._lines)

    def written(self, last: LogLine) -> None:
        """Forget the lines up to this one."""
        with self._lock:
            while self._lines and self._lines[0].number <= last.number:
                self._bytes -= len(self._lines.popleft().text.encode())


class RunLog(logging.Logger):
    """The logger of one attempt, for its handler and for code that takes a standard logger.

    A line goes to the process's log, with the run's id and lease, and is kept with the run.  A line at level debug is
    dropped unless the process logs that level.  Keyword arguments other than the standard logger's are fields of the
    line.
    """

    def __init__(self, run_id: int, lease_no: int, buffer: LogBuffer) -> None:
        super().__init__("rowcall.run", logging.DEBUG if logs.log().level == "debug" else logging.INFO)
        self._named: dict[str, object] = {"run_id": run_id, "lease_no": lease_no}
        self._buffer = buffer

    # The standard library's methods could not take a field named `msg`, `args` or `level`.

    def debug(self, msg: object, /, *args: object, **options: Any) -> None:  # type: ignore[override]
        """Log at level debug."""
        if self.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, msg, args, **options)

    def info(self, msg: object, /, *args: object, **options: Any) -> None:  # type: ignore[override]
        """Log at level info."""
        if self.isEnabledFor(logging.INFO):
            self._log(logging.INFO, msg, args, **options)

    def warning(self, msg: object, /, *args: object, **options: Any) -> None:  # type: ignore[override]
        """Log at level warning."""
        if self.isEnabledFor(logging.WARNING):
            self._log(logging.WARNING, msg, args, **options)

    def error(self, msg: object, /, *args: object, **options: Any) -> None:  # type: ignore[override]
        """Log at level error."""
        if self.isEnabledFor(logging.ERROR):
            self._log(logging.ERROR, msg, args, **options)

    def exception(self, msg: object, /, *args: object, exc_info: Any = True, **options: Any) -> None:  # type: ignore[override]
        """Log at level error, with the traceback."""
        if self.isEnabledFor(logging.ERROR):
            self._log(logging.ERROR, msg, args, exc_info=exc_info, **options)

    def critical(self, msg: object, /, *args: object, **options: Any) -> None:  # type: ignore[override]
        """Log at level critical, which Rowcall's log calls error."""
        if self.isEnabledFor(logging.CRITICAL):
            self._log(logging.CRITICAL, msg, args, **options)

    fatal = critical  # type: ignore[assignment]

    def log(self, level: int, msg: object, /, *args: object, **options: Any) -> None:  # type: ignore[override]
        """Log at this level."""
        if self.isEnabledFor(level):
            self._log(level, msg, args, **options)

    def getChild(self, suffix: str) -> RunLog:  # noqa: N802 - the standard library calls it so
        """Return this logger: one of the standard library's would keep nothing with the run."""
        return self

    def _log(  # type: ignore[override]
        self,
        level: int,
        msg: object,
        args: Any,
        /,
        exc_info: Any = None,
        extra: Mapping[str, object] | None = None,
        stack_info: bool = False,
        stacklevel: int = 1,
        **fields: object,
    ) -> None:
        extra = {**(extra or {}), FIELDS: {**(extra or {}), **fields}}
        # Skip two frames, of this method and of the one that called it, to reach the handler's line.
        super()._log(level, msg, args, exc_info, extra, stack_info, stacklevel + 2)

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library calls it so
        """Write the record to the process's log and keep it with the run; then call handlers that somebody added."""
        level = next((name for number, name in LEVELS if record.levelno >= number), "debug")
        try:
            message, fields, trace = record.getMessage(), getattr(record, FIELDS, {}), _trace(record)
            told = " ".join([message, *(f"{name}={logs.word(value)}" for name, value in fields.items())])
        except Exception as error:
            # Logging must not end the attempt, whatever its arguments are.
            told = message = (
                f"{record.pathname}:{record.lineno} logged a message that cannot be formatted: {type(error).__name__}"
            )
            fields, trace = {}, None
        self._keep(level, told, trace)
        logs.log().write(level, message, {**fields, **self._named, **({"exception": trace} if trace else {})})
        if self.handlers:
            super().callHandlers(record)

    def _keep(self, level: str, message: str, trace: str | None = None) -> None:
        kept = fit_to_keep(message[:SEARCHED_CHARACTERS])
        if len(kept) > MESSAGE_CHARACTERS:
            kept = kept[: MESSAGE_CHARACTERS - 1] + logs.ELLIPSIS
        end = fit_to_keep((trace or "")[-SEARCHED_CHARACTERS:])
        if len(end) > TRACEBACK_CHARACTERS:
            end = logs.ELLIPSIS + end[1 - TRACEBACK_CHARACTERS :]
        self._buffer.add(level, f"{kept}\n{end}" if end else kept)


def _trace(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    return record.stack_info if error is None else logs.traceback_of(error)
