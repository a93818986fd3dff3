"""Traces: OpenTelemetry's spans if this process has loaded it, and the `traceparent` that connects processes.

Nothing here imports OpenTelemetry.  Only a process in which `configure` or the app has loaded it pays for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from rowcall.base.redaction import redacted

# W3C Trace Context, version 00; an id that consists only of zeros is invalid.
TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

# The traceparent of the request that this thread answers.
INCOMING: ContextVar[str | None] = ContextVar("rowcall_traceparent", default=None)

API = "opentelemetry.trace"


class Span:
    """A span in progress; it does nothing if this process makes no spans."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def note(self, **attributes: Any) -> None:
        """Add attributes."""
        if self._span is not None:
            for name, value in attributes.items():
                self._span.set_attribute(f"rowcall.{name}", value)

    def http(self, status: int, route: str | None) -> None:
        """Add the outcome of an HTTP request."""
        if self._span is not None:
            self._span.set_attribute("http.response.status_code", status)
            if route is not None:
                self._span.set_attribute("http.route", route)
            if status >= 500:
                self._span.set_status(_trace().StatusCode.ERROR)

    def failed(self, error_type: str, message: str) -> None:
        """Mark the span as failed, with the error as it is stored: without secrets."""
        if self._span is not None:
            self._span.set_attribute("error.type", error_type)
            self._span.set_status(_trace().StatusCode.ERROR, redacted(message))


# What `span` returns in a process that makes no spans.  One object for all, because each enqueue and attempt asks.
NO_SPAN = nullcontext(Span())


def parsed(text: str | None) -> str | None:
    """Return a valid traceparent, or None: a caller's invalid one is ignored."""
    return text if text is not None and TRACEPARENT.fullmatch(text) else None


def loaded() -> bool:
    """Whether this process makes spans."""
    return API in sys.modules


def current() -> str | None:
    """Return the traceparent of the span in progress; without one, that of the request."""
    if loaded():
        context = _trace().get_current_span().get_span_context()
        if context.is_valid:
            return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    return INCOMING.get()


def span(
    name: str, kind: str, parent: str | None = None, attributes: Mapping[str, Any] | None = None
) -> AbstractContextManager[Span]:
    """Make a span for the block; `kind` is one of OpenTelemetry's, `parent` a traceparent.

    An error that leaves the block marks the span as failed, with its class but not its text, which may contain secrets.
    """
    return _made(name, kind, parent, attributes) if loaded() else NO_SPAN


@contextmanager
def _made(name: str, kind: str, parent: str | None, attributes: Mapping[str, Any] | None) -> Iterator[Span]:
    trace = _trace()
    context = None
    if parent is not None:
        _, trace_id, span_id, flags = parent.split("-")
        remote = trace.SpanContext(int(trace_id, 16), int(span_id, 16), True, trace.TraceFlags(int(flags, 16)))
        context = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    with trace.get_tracer("rowcall").start_as_current_span(
        name,
        context=context,
        kind=trace.SpanKind[kind],
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        try:
            yield Span(made)
        except BaseException as error:
            Span(made).failed(type(error).__name__, "")
            raise


def _trace() -> Any:
    return sys.modules[API]
