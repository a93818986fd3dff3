"""Configures OpenTelemetry from its own variables, if a collector is set and the app has not configured one."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from rowcall.base.clock import elapsed
from rowcall.base.logs import LogEvent, log

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

# How long the end of a process, or of an isolated run, waits for a collector.
FLUSH_SECONDS = 2.0

MISSING = "pip install 'rowcall[otel]'"


# A collector that is away for a day would otherwise fill the log.
QUIET_SECONDS = 300.0


class Warnings(logging.Handler):
    """Logs the packages' warnings in the format of the log, at most once in five minutes for each of their modules."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._next: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Log the message."""
        if elapsed() >= self._next.get(record.name, 0.0):
            self._next[record.name] = elapsed() + QUIET_SECONDS
            log().warning(LogEvent.TRACING_PROBLEM, error=record.getMessage(), module=record.name)


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a collector is set, and the packages are installed."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if not any(environment.get(name, "").strip() for name in ENDPOINTS):
        return False
    if find_spec("opentelemetry") and find_spec("opentelemetry.exporter.otlp.proto.http"):
        return True
    log().warning(LogEvent.TRACES_UNAVAILABLE, remedy=MISSING)
    return False


def load() -> bool:
    """Import the packages if traces are wanted, for processes that are forked from this one."""
    if not wanted():
        return False
    import opentelemetry.exporter.otlp.proto.http.trace_exporter
    import opentelemetry.sdk.trace.export  # noqa: F401 - imported for its forks

    return True


def configure(service: str, environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Send spans to the collector, unless the app has its own provider; return a function that flushes them."""
    if not load():
        return lambda: None
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return lambda: None
    named = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": service}
    logging.getLogger("opentelemetry").addHandler(Warnings())
    try:
        processor = BatchSpanProcessor(OTLPSpanExporter())
    except ValueError as error:  # the packages read their own variables
        log().warning(LogEvent.TRACES_UNAVAILABLE, remedy=f"correct the OTEL_ variables of this process: {error}")
        return lambda: None
    # Not at exit, which would wait half a minute for an unreachable collector.
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)

    def flush() -> None:
        sending = threading.Thread(target=provider.force_flush, name="traces", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)

    return flush
