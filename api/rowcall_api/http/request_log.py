"""A request id on every log line of a request, and on its answer."""

from __future__ import annotations

import re
import uuid

import flask

from rowcall.base import logs

# A caller's own id is used if it is short and plain enough for a log and a header.
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def register(app: flask.Flask) -> None:
    """Bind the id before each request, send it back, and forget it afterwards."""
    app.before_request(_begin)
    app.after_request(_answer)
    app.teardown_request(_forget)


def _begin() -> None:
    sent = flask.request.headers.get("X-Request-Id", "")
    flask.g.request_id = sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
    logs.REQUEST_ID.set(flask.g.request_id)


def _answer(response: flask.Response) -> flask.Response:
    response.headers["X-Request-Id"] = flask.g.get("request_id", "")
    return response


def _forget(_: BaseException | None) -> None:
    logs.REQUEST_ID.set(None)
