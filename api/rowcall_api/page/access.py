"""Who may see a screen, and who may change something: the rights of the key with which the operator signed in."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import flask
from werkzeug.exceptions import BadRequest, Forbidden, Unauthorized

from rowcall.access.caller import Caller
from rowcall.access.page_sessions import SESSION, find_session
from rowcall.base.database import Connection
from rowcall.base.endpoints import plain_address
from rowcall.definitions import clock
from rowcall_api.http import auth, request_log
from rowcall_api.page.reading import at_once
from rowcall_api.rights import may
from rowcall_api.standby.requests import POSITION_COOKIE, POSITION_SECONDS

View = TypeVar("View", bound=Callable[..., Any])

COOKIE = "rowcall_session"

# For encrypted connections.  Browsers accept a cookie with this name only over such a connection, so nobody can plant a
# session over a plain one; find_session() refuses a token that was read on a plain one.
SECURE_COOKIE = f"__Secure-{COOKIE}"

# Methods that change nothing; all others need the page's origin and the session's token.
READS = frozenset({"GET", "HEAD", "OPTIONS"})

# The attribute of a view that is shown to everybody, and that of a view that needs a scope besides a session.
OPEN = "open_to_all"
SCOPE = "page_scope"

# Key in the application's extensions: whether the page may change things over plain HTTP on any address.
WITHOUT_TLS = "page_without_tls"

READ_ONLY = (
    "this page is read-only, because your connection to it is not encrypted: use https, or set"
    " ROWCALL_PAGE_WITHOUT_TLS=on if nobody else can read the network's traffic"
)


def open_to_all(view: View) -> View:
    """Show a screen to everybody, without a session."""
    view.__dict__[OPEN] = True
    return view


def only_for(scope: str) -> Callable[[View], View]:
    """Show a screen, or accept a form, only with this scope."""

    def mark(view: View) -> View:
        view.__dict__[SCOPE] = scope
        return view

    return mark


def is_open() -> bool:
    """Whether this request needs no session."""
    return getattr(_view(), OPEN, False)


def _view() -> object:
    return flask.current_app.view_functions[str(flask.request.endpoint)]


def check() -> flask.typing.ResponseReturnValue | None:
    """Find the caller of this request, and refuse what its key, its session or its connection does not allow."""
    sends = flask.request.method not in READS
    _must_be_storable()
    if sends:
        _must_come_from_here()
    if is_open():
        return None
    found = caller()
    if found is None:
        return _sign_in(sends)
    flask.g.caller = found
    request_log.note(key=found.prefix)
    if found.unnoted:
        auth.record_use(found)
    scope = getattr(_view(), SCOPE, None)
    if scope and not may(scope):
        raise Forbidden(f"your key lacks the scope `{scope}`: sign in with another key")
    if sends:
        _must_have_token()
        if not is_private() and flask.request.endpoint != "page.sign_out":
            raise Forbidden(READ_ONLY)
    return None


def caller() -> Caller | None:
    """Return the owner of this request's session; None if there is no session, or if it has ended."""
    return at_once(_found, token()) if token() else None


def token() -> str:
    """Return the token that the browser sent; it may be anything."""
    return flask.request.cookies.get(cookie(), "")


def cookie() -> str:
    """Return the name of the session cookie for this kind of connection."""
    return SECURE_COOKIE if is_encrypted() else COOKIE


def _found(connection: Connection, token: str) -> Caller | None:
    """Return the session's caller, and note the database's time, to which the screen's times are relative."""
    flask.g.at = clock(connection)
    return find_session(connection, token, is_encrypted())


def _sign_in(sends: bool) -> flask.typing.ResponseReturnValue:
    """Redirect to the sign-in form, which then leads back to the requested screen."""
    if sends:
        raise Unauthorized("your session has ended, and nothing was changed: sign in, and try again")
    asked = flask.request.full_path.rstrip("?")
    ended = "yes" if cookie() in flask.request.cookies else None
    return flask.redirect(flask.url_for("page.sign_in", to=None if asked == "/admin" else asked, ended=ended))


def keep(response: flask.Response, begun: str) -> flask.Response:
    """Store the session's token in the browser, where no script and no other site can use it."""
    response.set_cookie(
        cookie(), begun, max_age=SESSION, path="/admin", secure=is_encrypted(), httponly=True, samesite="Lax"
    )
    return response


def keep_position(response: flask.Response, position: int) -> None:
    """Let this browser see what it has just written, until every answer of the standby includes it."""
    response.set_cookie(
        POSITION_COOKIE,
        str(position),
        max_age=POSITION_SECONDS,
        path="/admin",
        secure=is_encrypted(),
        httponly=True,
        samesite="Lax",
    )


def may_change(scope: str = "operate") -> bool:
    """Whether to show buttons for what needs this scope."""
    return may(scope) and is_private()


def is_encrypted() -> bool:
    """Whether the browser's connection is encrypted as far as the API, a trusted proxy or a proxy on this machine."""
    request = flask.request
    if request.is_secure:
        return True
    proxies, sender = flask.current_app.extensions["trusted_proxies"], request.remote_addr or ""
    trusted = _is_loopback(sender) or (proxies is not None and bool(sender) and plain_address(sender) in proxies)
    return trusted and request.headers.get("X-Forwarded-Proto", "").split(",")[-1].strip() == "https"


def is_private() -> bool:
    """Whether nobody else can read what the browser sends: it is encrypted, or stays on this machine."""
    if is_encrypted() or flask.current_app.extensions[WITHOUT_TLS]:
        return True
    name = urlsplit(f"//{flask.request.host}").hostname or ""
    return _is_loopback(flask.request.remote_addr or "") and (name == "localhost" or _is_loopback(name))


def _is_loopback(address: str) -> bool:
    try:
        return plain_address(address).is_loopback
    except ValueError:
        return False


def csrf_token() -> str:
    """Return what each form of this session sends back; another site cannot know it."""
    return hmac.digest(token().encode(), b"form", hashlib.sha256).hex()


def _must_have_token() -> None:
    if not hmac.compare_digest(flask.request.form.get("csrf", "").encode(), csrf_token().encode()):
        raise Forbidden("this form is not from your session, and nothing was changed: reload the page")


def _must_be_storable() -> None:
    """Refuse the one character that PostgreSQL cannot store, before it reaches a statement."""
    request = flask.request
    values = [*(request.view_args or {}).values(), *(one for lot in request.values.listvalues() for one in lot)]
    if any("\0" in str(value) for value in values):
        raise BadRequest("text cannot contain the character U+0000")


def _must_come_from_here() -> None:
    """Refuse a form from another site.  Every recent browser sends Origin with a form."""
    try:
        origin = urlsplit(flask.request.headers.get("Origin", ""))
    except ValueError:
        origin = urlsplit("")
    if origin.scheme not in {"http", "https"} or origin.netloc != flask.request.host:
        raise Forbidden(
            "this form is from another site, and nothing was changed; if a proxy is in front of the API, it must pass"
            " on the Host header"
        )
