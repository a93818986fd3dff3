"""The door to /v1: what is asked of every request before its route sees it.

First who calls, then everything else: whoever lacks the key or the scope learns nothing of what else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import flask
from webargs.flaskparser import abort
from werkzeug.exceptions import MethodNotAllowed, NotAcceptable, NotFound, RequestEntityTooLarge

from rowcall_api.http import auth

API = "/v1"

JSON = ("application/json", "application/json;charset=utf-8")

# The names of the app's blueprints, among the application's extensions.
PROTECTED = "protected_blueprints"

View: TypeAlias = Callable[..., Any] | None


def register(app: flask.Flask) -> None:
    """Guard all that lies below API, the blueprints of an app, and every other route that names a scope."""
    app.extensions[PROTECTED] = set()
    app.before_request(_let_in)


def protect(app: flask.Flask, blueprint: str) -> None:
    """Guard this blueprint of an app too, at whatever path it lies."""
    app.extensions[PROTECTED].add(blueprint)


def protects(app: flask.Flask, endpoint: str) -> bool:
    """Whether an endpoint belongs to a blueprint of an app."""
    return endpoint.partition(".")[0] in app.extensions.get(PROTECTED, ())


def _let_in() -> None:
    app, request = flask.current_app, flask.request
    view: View = app.view_functions.get(request.endpoint or "")
    inside = request.path == API or request.path.startswith(f"{API}/") or protects(app, _endpoint())
    if inside or auth.named_scope(view, request.method):
        flask.g.caller = auth.authenticate()
        auth.authorize(flask.g.caller, view)
    if inside:
        _path_can_be_a_name()
        _json_is_accepted()
        _body_is_within_bounds()
        _query_is_asked_for(view)


def _endpoint() -> str:
    """What answers at this path; also for a method that it does not answer, which a stranger shall not learn."""
    error = flask.request.routing_exception
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        adapter = flask.current_app.url_map.bind_to_environ(flask.request.environ)
        found: str = adapter.match(method=min(error.valid_methods))[0]
        return found
    return flask.request.endpoint or ""


def _path_can_be_a_name() -> None:
    """NotFound for a path with control characters: no name has them, and PostgreSQL could not even look for some."""
    if not flask.request.path.isprintable():
        raise NotFound


def _json_is_accepted() -> None:
    accepted = flask.request.accept_mimetypes
    if accepted and not any(accepted.quality(form) for form in JSON):
        raise NotAcceptable("this API answers JSON: send `Accept: application/json`, or no Accept at all")


def _body_is_within_bounds() -> None:
    """Read it now, so that routes which need none refuse one that is too large, too."""
    body = flask.request.get_data(cache=True)
    # Werkzeug ends a body without a length at the limit, as if nothing came behind it.
    if len(body) == flask.current_app.config["MAX_CONTENT_LENGTH"] and flask.request.environ["wsgi.input"].read(1):
        raise RequestEntityTooLarge


def _query_is_asked_for(view: View) -> None:
    """Refuse a query where the route takes none; where it takes one, its schema refuses what it does not know."""
    function = getattr(getattr(view, "view_class", None), flask.request.method.lower(), view)
    parameters = getattr(function, "_apidoc", {}).get("arguments", {}).get("parameters", ())
    if view and not any(parameter["in"] == "query" for parameter in parameters):
        unknown = {name: ["Unknown field."] for name in flask.request.args}
        if unknown:
            abort(422, messages={"query": unknown})
