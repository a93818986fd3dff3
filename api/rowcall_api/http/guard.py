"""The guard of /v1: the checks of every request before its route runs.

The key comes first: a caller without the key or the scope learns nothing about what else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import flask
from webargs.flaskparser import abort
from werkzeug.exceptions import NotAcceptable, NotFound, RequestEntityTooLarge

from rowcall_api.http import auth

API = "/v1"

JSON = ("application/json", "application/json;charset=utf-8")

View: TypeAlias = Callable[..., Any] | None


def register(app: flask.Flask) -> None:
    """Guard every route below API, and every other route that names a scope."""
    app.before_request(_check_request)


def _check_request() -> None:
    view: View = flask.current_app.view_functions.get(flask.request.endpoint or "")
    inside = flask.request.path == API or flask.request.path.startswith(f"{API}/")
    if inside or auth.names_scope(view):
        flask.g.caller = auth.authenticate()
        auth.authorize(flask.g.caller, view)
    if inside:
        _path_can_be_a_name()
        _json_is_accepted()
        _body_is_within_bounds()
        _query_is_asked_for(view)


def _path_can_be_a_name() -> None:
    """NotFound for a path with control characters: no name has them, and PostgreSQL could not look some of them up."""
    if not flask.request.path.isprintable():
        raise NotFound


def _json_is_accepted() -> None:
    accepted = flask.request.accept_mimetypes
    if accepted and not any(accepted.quality(form) for form in JSON):
        raise NotAcceptable("this API answers JSON: send `Accept: application/json`, or no Accept at all")


def _body_is_within_bounds() -> None:
    """Read it now, so that routes without a body also refuse one that is too large."""
    body = flask.request.get_data(cache=True)
    # Werkzeug silently cuts a body without a length at the limit.
    if len(body) == flask.current_app.config["MAX_CONTENT_LENGTH"] and flask.request.environ["wsgi.input"].read(1):
        raise RequestEntityTooLarge


def _query_is_asked_for(view: View) -> None:
    """Refuse a query if the route takes none; if it takes one, its schema refuses unknown fields."""
    parameters = getattr(view, "_apidoc", {}).get("arguments", {}).get("parameters", ())
    if view and not any(parameter["in"] == "query" for parameter in parameters):
        unknown = {name: ["Unknown field."] for name in flask.request.args}
        if unknown:
            abort(422, messages={"query": unknown})
