"""Adds a request id to the log lines and the response of a request, and logs one access line per request."""

from __future__ import annotations

import re
import uuid

import flask

from rowcall.base import clock, logs
from rowcall.base.logs import LogEvent, log
from rowcall_api.http.waiting.parking import memory

# An id that the caller sends is used if it is short and plain.
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def register(app: flask.Flask) -> None:
    """Bind the id before each request; afterwards return it, write the access line and unbind it.

    Call this before any other registration, so that it sees the final response.
    """
    app.before_request(_begin)
    app.after_request(_answer)
    app.teardown_request(_forget)


def note(**fields: object) -> None:
    """Add fields to this request's access line."""
    flask.g.setdefault("noted", {}).update(fields)


def _begin() -> None:
    sent = flask.request.headers.get("X-Request-Id", "")
    noted = memory()
    flask.g.began = noted.setdefault("began", clock.elapsed())
    flask.g.request_id = noted.setdefault("request_id", sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex)
    logs.REQUEST_ID.set(flask.g.request_id)


def _answer(response: flask.Response) -> flask.Response:
    response.headers["X-Request-Id"] = flask.g.get("request_id", "")
    _write_line(response.status_code)
    return response


def _write_line(status: int) -> None:
    """Write the access line, with the route instead of the path, because paths and queries may contain private data."""
    rule = flask.request.url_rule
    write = log().warning if status >= 500 else log().info
    write(
        LogEvent.API_ANSWERED,
        **({"route": rule.rule} if rule else {}),
        method=flask.request.method,
        status=status,
        duration_ms=round((clock.elapsed() - flask.g.began) * 1000, 1),
        **flask.g.get("noted", {}),
    )


def _forget(_: BaseException | None) -> None:
    logs.REQUEST_ID.set(None)
