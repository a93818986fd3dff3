"""One span for each request, and the caller's `traceparent` for the runs that the request enqueues."""

from __future__ import annotations

from contextlib import ExitStack

import flask

from rowcall.base import tracing
from rowcall_api.http.waiting.parking import memory


def register(app: flask.Flask) -> None:
    """Begin a span before each request, and end it afterwards."""
    app.before_request(_begin)
    app.after_request(_answer)
    app.teardown_request(_end)


def _begin() -> None:
    sent = tracing.parsed(flask.request.headers.get("traceparent"))
    tracing.INCOMING.set(sent)
    if not tracing.loaded():
        return
    rule = flask.request.url_rule
    # The route instead of the path, because paths and queries may contain private data.
    name = f"{flask.request.method} {rule.rule}" if rule else flask.request.method
    stack = flask.g.traced = ExitStack()
    attributes = {"http.request.method": flask.request.method}
    noted = memory()
    flask.g.span = stack.enter_context(tracing.span(name, "SERVER", noted.get("trace_parent", sent), attributes))
    # A request that waits is handled twice, and its second span is a child of the first.
    noted.setdefault("trace_parent", tracing.current())


def _answer(response: flask.Response) -> flask.Response:
    if "span" in flask.g:
        rule = flask.request.url_rule
        flask.g.span.http(response.status_code, rule.rule if rule else None)
    return response


def _end(_: BaseException | None) -> None:
    tracing.INCOMING.set(None)
    stack = flask.g.pop("traced", None)
    if stack is not None:
        stack.close()
