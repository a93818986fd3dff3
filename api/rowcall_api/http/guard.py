"""The guard: checks requests before each route of /v1, and sets security headers on every response.

It checks the key first, so that a caller without a key or without the scope learns nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

import flask
from webargs.flaskparser import abort
from werkzeug.exceptions import (
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
)

from rowcall_api.http import auth
from rowcall_api.http.invalid import UNKNOWN

API = "/v1"

JSON = ("application/json", "application/json;charset=utf-8")

# The media type of a file's content.
BYTES = "application/octet-stream"

# Headers of every response, unless its route sets others.
UNSTORED = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

# Keys in the application's extensions.  The names of the app's blueprints:
PROTECTED = "protected_blueprints"
# The attribute of a view that returns something other than JSON:
FORM = "returned_form"
# The endpoints and methods that take a query, which openapi.py adds:
WITH_QUERY = "operations_with_query"

View: TypeAlias = Callable[..., Any] | None


def register(app: flask.Flask) -> None:
    """Guard all routes below /v1, those of an app, and every other route that names a scope."""
    app.extensions.update({PROTECTED: set(), WITH_QUERY: set()})
    app.before_request(_check_host)
    app.before_request(_check_request)
    app.after_request(_forbid_guessing)


def returns(form: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a view that returns this media type if it succeeds; its errors are JSON, as everywhere."""

    def mark(view: Callable[..., Any]) -> Callable[..., Any]:
        # The decorators above this one use functools.wraps, which copies this attribute.
        view.__dict__[FORM] = form
        return view

    return mark


def protect(app: flask.Flask, blueprint: str) -> None:
    """Guard this blueprint of an app too, whatever its path."""
    app.extensions[PROTECTED].add(blueprint)


def protects(app: flask.Flask, endpoint: str) -> bool:
    """Return whether an endpoint belongs to a blueprint of an app."""
    return endpoint.partition(".")[0] in app.extensions.get(PROTECTED, ())


def _check_host() -> None:
    """Refuse an HTTP/1.1 request without a Host header, as RFC 9112 requires."""
    environ = flask.request.environ
    if environ.get("SERVER_PROTOCOL") == "HTTP/1.1" and "HTTP_HOST" not in environ:
        raise BadRequest("send a Host header: HTTP/1.1 requires one")


def _forbid_guessing(response: flask.Response) -> flask.Response:
    """Forbid guessing a response's type, and caching a response that depends on a key, unless its route allows it."""
    for name, value in UNSTORED.items():
        response.headers.setdefault(name, value)
    return response


def _check_request() -> None:
    app, request = flask.current_app, flask.request
    view: View = app.view_functions.get(request.endpoint or "")
    inside = request.path == API or request.path.startswith(f"{API}/") or protects(app, _endpoint())
    if inside or auth.named_scope(view, request.method):
        flask.g.caller = auth.authenticate()
        auth.authorize(flask.g.caller, view)
    if inside:
        _query_can_be_text()
        _path_can_be_a_name()
        _form_is_accepted(getattr(view, FORM, None))
        _body_is_within_bounds()
        _query_is_asked_for()


def _endpoint() -> str:
    """Return the endpoint of this path, even for an unsupported method, so that strangers learn nothing."""
    error = flask.request.routing_exception
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        adapter = flask.current_app.url_map.bind_to_environ(flask.request.environ)
        found: str = adapter.match(method=min(error.valid_methods))[0]
        return found
    return flask.request.endpoint or ""


def _query_can_be_text() -> None:
    """Refuse bytes that Werkzeug would silently replace, because a filter would then search for something else."""
    try:
        unquote_to_bytes(flask.request.query_string).decode()
    except UnicodeDecodeError:
        raise BadRequest("the query is not UTF-8: send its values as UTF-8, percent-encoded") from None


def _path_can_be_a_name() -> None:
    """Raise NotFound for a path with control characters, which no name contains."""
    if not flask.request.path.isprintable():
        raise NotFound


def _form_is_accepted(other: str | None) -> None:
    accepted = flask.request.accept_mimetypes
    if accepted and not any(accepted.quality(form) for form in (JSON if other is None else (other,))):
        form = JSON[0] if other is None else other
        what = "this API returns only JSON" if other is None else f"this route returns only {other}"
        raise NotAcceptable(f"{what}: send `Accept: {form}`, or no Accept header")


def _body_is_within_bounds() -> None:
    """Read the body now, so that a body that is too large is refused even on routes that take none."""
    body = flask.request.get_data(cache=True)
    # Werkzeug silently truncates a body without a length at the limit.
    if len(body) == flask.current_app.config["MAX_CONTENT_LENGTH"] and flask.request.environ["wsgi.input"].read(1):
        raise RequestEntityTooLarge


def _query_is_asked_for() -> None:
    """Refuse a query on a route that takes none; on other routes, the schema refuses unknown fields."""
    request = flask.request
    method = "get" if request.method in {"HEAD", "OPTIONS"} else request.method.lower()
    taken = (request.endpoint, method) in flask.current_app.extensions[WITH_QUERY]
    if request.endpoint and request.args and not taken:
        abort(422, messages={"query": {name: [UNKNOWN] for name in request.args}})
