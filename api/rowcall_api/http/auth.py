"""Authentication: a bearer key with the scope that a route needs.

A route only names the scope. The guard checks the key before anything else, so that a caller without a key, or without
that scope, learns nothing from other errors in a request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import flask
import psycopg2
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Forbidden, Unauthorized

from rowcall.access.api_keys import KEY, find_caller, note_use
from rowcall.access.audit import Operator
from rowcall.access.caller import Caller, Limits
from rowcall.base.errors import DatabaseUnreachable
from rowcall_api.http import rate_limit, request_log
from rowcall_api.http.database import statement, transaction
from rowcall_api.http.invalid import Place

View = TypeVar("View", bound=Callable[..., Any])


MARK = "needed_scope"

# In place of a scope: any valid key.
ANY_KEY = "any"


class Challenge(WWWAuthenticate):
    """A WWW-Authenticate challenge whose values are always quoted, as RFC 6750 requires and Werkzeug does not."""

    def __init__(self, **parameters: str) -> None:
        super().__init__("bearer", {**parameters})

    def to_header(self) -> str:
        """Return the header (Werkzeug's hook)."""
        values = ", ".join(f'{name}="{value}"' for name, value in self.parameters.items())
        return f"Bearer {values}".rstrip()


# If the request has no key, the challenge has no error code (RFC 6750).
MISSING = Challenge()
INVALID = Challenge(error="invalid_token")


class KeyRefused(Forbidden):
    """Refuses a valid key; `field` names the field that it may not send, and `place` is its path in a batch's body."""

    field = ""
    place: Place = ()


class ScopeMissing(KeyRefused):
    """Refuses a valid key that lacks a scope; the challenge names the scope."""

    def __init__(self, scope: str, why: str = "", field: str = "") -> None:
        self._scope = scope
        self.field = field
        super().__init__(f"this key lacks the scope `{scope}`{why and f', {why}'}")

    def get_headers(self, *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
        """Return the headers of the response (Werkzeug's hook)."""
        challenge = Challenge(error="insufficient_scope", scope=self._scope)
        return [*super().get_headers(*args, **kwargs), ("WWW-Authenticate", challenge.to_header())]


class KeyLimited(KeyRefused):
    """Refuses job types and queues outside a key's limits."""

    def __init__(self, limits: Limits, field: str = "") -> None:
        self.field = field
        # List all limits: naming only the one that was exceeded would reveal the run's job type or queue.
        named = (("job types", limits.job_types), ("queues", limits.queues))
        allowed = " and ".join(f"the {what} {', '.join(names)}" for what, names in named if names is not None)
        super().__init__(f"this key is limited to {allowed}")

    def get_headers(self, *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
        """Return the headers of the response (Werkzeug's hook)."""
        challenge = Challenge(error="insufficient_scope")
        return [*super().get_headers(*args, **kwargs), ("WWW-Authenticate", challenge.to_header())]


def needs(scope: str) -> Callable[[View], View]:
    """Let only callers with this scope (or admin, which includes all) call a view; with ANY_KEY, all callers."""

    def mark(view: View) -> View:
        # The decorators above this one use functools.wraps, which copies this attribute.
        view.__dict__[MARK] = scope
        return view

    return mark


def named_scope(view: object, method: str) -> str | None:
    """Return the scope that a view needs; for a class-based view, that of its function for this method."""
    functions = getattr(view, "view_class", None)
    function = getattr(functions, "get" if method == "HEAD" else method.lower(), None)
    named: str | None = getattr(function, MARK, None) or getattr(view, MARK, None)
    return named


def authenticate() -> Caller:
    """Return the caller of this request; raise an error if its key is invalid or over its rate limit."""
    try:
        authorization = flask.request.authorization
    except ValueError:  # Werkzeug could not decode the credentials of another scheme, such as Basic
        authorization = None
    if authorization is None or authorization.type != "bearer" or not authorization.token:
        raise Unauthorized(
            "send a key as `Authorization: Bearer rc_...`; `rowcall keys create` creates one", www_authenticate=MISSING
        )
    caller = look_up(authorization.token)
    if caller is None:
        raise Unauthorized("this key is unknown, expired or revoked", www_authenticate=INVALID)
    if caller.unnoted:
        record_use(caller)
    return caller


def look_up(key: str) -> Caller | None:
    """Return the owner of this key. A well-formed key is always looked up, however many wrong ones came before it."""
    form = KEY.fullmatch(key)
    if form is None:
        rate_limit.count_wrong_key()
        return None
    request_log.note(key=form[1])
    rate_limit.before_lookup(key)
    with statement() as connection:
        caller = find_caller(connection, key)
    rate_limit.after_lookup(key, known=caller is not None)
    return caller


def operator() -> Operator:
    """Return the operator of this request, for the audit log."""
    return Operator(flask.g.caller.who, flask.g.get("request_id"), key_owner())


def key_owner() -> str:
    """Return the owner of this request's idempotency key: the name of the API key, which rotation keeps."""
    return f"api:{flask.g.caller.name}"


def authorize(caller: Caller, view: object) -> None:
    """Raise Forbidden unless the caller's key has the scope that the view needs; the default is admin."""
    scope = named_scope(view, flask.request.method) or ("admin" if view else None)
    if scope and scope != ANY_KEY and not caller.scopes & {scope, "admin"}:
        raise ScopeMissing(scope)


def record_use(caller: Caller) -> None:
    """Record the use of a key; if that fails, the request continues and the next one records it."""
    with contextlib.suppress(DatabaseUnreachable, psycopg2.Error), transaction() as connection:
        note_use(connection, caller.key_id)
