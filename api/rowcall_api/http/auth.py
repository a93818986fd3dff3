"""Who calls: a bearer key with the scope that a route needs.

A route only names the scope that it needs.  The guard checks the key before anything else, so that a caller without
a key, or without that scope, learns nothing from what else is wrong with a request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import flask
import sqlalchemy
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Forbidden, Unauthorized

from rowcall.access.api_keys import KEY, Caller, find_caller, note_use
from rowcall.access.audit import Operator
from rowcall.base.errors import DatabaseUnreachable
from rowcall_api.http import rate_limit, request_log
from rowcall_api.http.database import transaction

View = TypeVar("View", bound=Callable[..., Any])

CHALLENGE = WWWAuthenticate("bearer")

MARK = "needed_scope"


def needs(scope: str) -> Callable[[View], View]:
    """Let a view answer only callers whose key has this scope (or admin, which has all)."""

    def mark(view: View) -> View:
        # functools.wraps, which every decorator above this one uses, copies it.
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
    """The caller of this request, within the rate limit of the key."""
    authorization = flask.request.authorization
    if authorization is None or authorization.type != "bearer" or not authorization.token:
        raise Unauthorized(
            "send a key as `Authorization: Bearer rc_...`; `rowcall keys create` makes one", www_authenticate=CHALLENGE
        )
    caller = _look_up(authorization.token)
    if caller is None:
        raise Unauthorized("this key is unknown, expired or revoked", www_authenticate=CHALLENGE)
    if caller.unnoted:
        _note_use(caller)
    return caller


def _look_up(key: str) -> Caller | None:
    """The owner of this key.  A key of the right form is always looked up, whatever wrong ones came before it."""
    form = KEY.fullmatch(key)
    if form is None:
        rate_limit.count_wrong_key()
        return None
    request_log.note(key=form[1])
    rate_limit.before_lookup(key)
    with transaction() as connection:
        caller = find_caller(connection, key)
    rate_limit.after_lookup(key, known=caller is not None)
    return caller


def operator() -> Operator:
    """The operator who makes this request, for the audit log."""
    return Operator(flask.g.caller.who, flask.g.get("request_id"))


def authorize(caller: Caller, view: object) -> None:
    """Forbidden unless the caller's key has the scope that the view needs; a view that names none needs admin."""
    scope = named_scope(view, flask.request.method) or ("admin" if view else None)
    if scope and not caller.scopes & {scope, "admin"}:
        raise Forbidden(f"this key lacks the scope `{scope}`")


def _note_use(caller: Caller) -> None:
    """Failing to record the use is no reason to refuse the request; the next one records it."""
    with contextlib.suppress(DatabaseUnreachable, sqlalchemy.exc.DBAPIError), transaction() as connection:
        note_use(connection, caller.key_id)
