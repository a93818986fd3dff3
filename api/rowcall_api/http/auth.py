"""Who calls: a bearer key with the scope that a route needs.

A route only says which scope it needs.  The guard asks for the key before anything else is looked at, so that
who has none, or not that scope, learns nothing from what else is wrong with a request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import flask
import sqlalchemy
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Forbidden, Unauthorized

from rowcall.access.api_keys import Caller, find_caller, note_use
from rowcall.access.audit import Operator
from rowcall.base.errors import DatabaseUnreachable
from rowcall_api.http import rate_limit
from rowcall_api.http.database import transaction

View = TypeVar("View", bound=Callable[..., Any])

CHALLENGE = WWWAuthenticate("bearer")

MARK = "needed_scope"


def needs(scope: str) -> Callable[[View], View]:
    """Let a view answer only callers whose key has this scope (or admin, which has all)."""

    def mark(view: View) -> View:
        # functools.wraps, which every decorator above this one uses, takes it along.
        view.__dict__[MARK] = scope
        return view

    return mark


def named_scope(view: object, method: str) -> str | None:
    """The scope that a view names, or in a view that is a class, the function for this method."""
    functions = getattr(view, "view_class", None)
    function = getattr(functions, "get" if method == "HEAD" else method.lower(), None)
    named: str | None = getattr(function, MARK, None) or getattr(view, MARK, None)
    return named


def authenticate() -> Caller:
    """Who makes this request, within the rate that the key may call at."""
    authorization = flask.request.authorization
    if authorization is None or authorization.type != "bearer" or not authorization.token:
        raise Unauthorized(
            "send a key as `Authorization: Bearer rc_...`; `rowcall keys create` makes one", www_authenticate=CHALLENGE
        )
    rate_limit.before_lookup(authorization.token)
    with transaction() as connection:
        caller = find_caller(connection, authorization.token)
    rate_limit.after_lookup(authorization.token, known=caller is not None)
    if caller is None:
        raise Unauthorized("this key is unknown, expired or revoked", www_authenticate=CHALLENGE)
    if caller.unnoted:
        _note_use(caller)
    return caller


def operator() -> Operator:
    """Who steers by this request, for the audit log."""
    return Operator(f"api:{flask.g.caller.name}", flask.g.get("request_id"))


def authorize(caller: Caller, view: object) -> None:
    """Forbidden unless the caller's key has the scope that the view needs; one that names none is the admin's."""
    scope = named_scope(view, flask.request.method) or ("admin" if view else None)
    if scope and not caller.scopes & {scope, "admin"}:
        raise Forbidden(f"this key has not the scope {scope}")


def _note_use(caller: Caller) -> None:
    """When a key was last used is good to know, and no reason to refuse a request; the next one notes it then."""
    with contextlib.suppress(DatabaseUnreachable, sqlalchemy.exc.DBAPIError), transaction() as connection:
        note_use(connection, caller.key_id)
