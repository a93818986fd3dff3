"""Who calls: a bearer key with the scope that a route needs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import flask
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Forbidden, Unauthorized

from api.database import transaction
from shared.api_keys import Caller, find_caller

P = ParamSpec("P")
R = TypeVar("R")

CHALLENGE = WWWAuthenticate("bearer")


def needs(scope: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a view answer only callers whose key has this scope (or admin, which has all)."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            flask.g.caller = _caller(scope)
            return view(*args, **kwargs)

        # The description of the interface tells it.
        guarded.__dict__["scope"] = scope
        return guarded

    return decorate


def _caller(scope: str) -> Caller:
    authorization = flask.request.authorization
    if authorization is None or authorization.type != "bearer" or not authorization.token:
        raise Unauthorized(
            "send a key as `Authorization: Bearer rc_...`; `rowcall keys create` makes one", www_authenticate=CHALLENGE
        )
    with transaction() as connection:
        caller = find_caller(connection, authorization.token)
    if caller is None:
        raise Unauthorized("this key is unknown, expired or revoked", www_authenticate=CHALLENGE)
    if not caller.scopes & {scope, "admin"}:
        raise Forbidden(f"this key has not the scope {scope}")
    return caller
