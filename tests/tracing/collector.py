"""A collector: an HTTP server that decodes what OpenTelemetry's exporter sends."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.servers.web import Reply, Request, WebServer


@dataclass(frozen=True)
class Seen:
    """A span as the collector has it."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    service: str
    failed: bool
    attributes: dict[str, Any] = field(default_factory=dict)


class Collector(WebServer):
    """Keeps the spans that it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Seen] = []

    def take(self, request: Request) -> Reply:
        """Decode the spans of a request."""
        assert request.path == "/v1/traces"
        body = gzip.decompress(request.body) if request.headers.get("Content-Encoding") == "gzip" else request.body
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {one.key: one.value.string_value for one in of_resource.resource.attributes}["service.name"]
            for scope in of_resource.scope_spans:
                self.spans += [_seen(one, service) for one in scope.spans]
        return Reply(200)

    def named(self, name: str) -> Seen:
        """Return the one span with this name."""
        [found] = [one for one in self.spans if one.name == name]
        return found

    @property
    def names(self) -> list[str]:
        """The names of all spans, sorted."""
        return sorted(one.name for one in self.spans)


def _seen(span: Any, service: str) -> Seen:
    attributes = {one.key: _value(one.value) for one in span.attributes}
    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    failed = span.status.code == 2
    return Seen(span.name, span.kind, *ids, service, failed, attributes)


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
