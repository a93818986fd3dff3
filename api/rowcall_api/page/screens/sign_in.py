"""Sign in with an API key or a one-time link, and sign out."""

from __future__ import annotations

import flask
from werkzeug.exceptions import TooManyRequests

from rowcall.access.page_sessions import begin_session, end_session, follow_link
from rowcall_api.http import auth
from rowcall_api.http.database import transaction
from rowcall_api.page import access
from rowcall_api.page.blueprint import PREFIX, blueprint

UNKNOWN = "This key is unknown, expired or revoked. `rowcall keys list` shows the valid keys; `rowcall keys create`\
 creates one."
ONLY_ENQUEUE = "This key may only enqueue. The page needs a key with the scope `read`, and `operate` to change things."
USED = "This link has been used, or is older than 10 minutes. Sign in with a key: `rowcall up` keeps one in the file\
 api_key in ROWCALL_HOME, which is .rowcall by default."
ENDED = "Your session has ended: sign in again."

# A key needs one of these scopes to see anything.
SEE = {"read", "operate", "admin"}


@blueprint.get("/sign-in")
@access.open_to_all
def sign_in() -> str:
    """Show the form."""
    return _form(ENDED if flask.request.args.get("ended") else "")


@blueprint.post("/sign-in")
@access.open_to_all
def begin() -> flask.typing.ResponseReturnValue:
    """Begin a session with a key."""
    try:
        caller = auth.look_up(flask.request.form.get("key", "").strip())
    except TooManyRequests as error:
        return _form(error.description or ""), 429, {"Retry-After": str(error.retry_after)}
    if caller is None:
        return _form(UNKNOWN), 401
    if not caller.scopes & SEE:
        return _form(ONLY_ENQUEUE), 403
    with transaction() as connection:
        token = begin_session(connection, caller, flask.g.get("request_id"), access.is_encrypted())
    return _entered(token, _wanted())


@blueprint.get("/link/<token>")
@access.open_to_all
def follow(token: str) -> flask.typing.ResponseReturnValue:
    """Begin a session with a one-time link, unless a program only asks whether it exists."""
    if flask.request.method == "HEAD":
        return ""
    with transaction() as connection:
        session = follow_link(connection, token, flask.g.get("request_id"), access.is_encrypted())
    if session is None:
        return flask.redirect(PREFIX) if access.caller() else (_form(USED), 403)
    return _entered(session, PREFIX)


@blueprint.post("/sign-out")
def sign_out() -> flask.typing.ResponseReturnValue:
    """End the session, here and in the database."""
    with transaction() as connection:
        end_session(connection, access.token())
    response = flask.redirect(flask.url_for("page.sign_in"), 303)
    response.delete_cookie(access.cookie(), path=PREFIX, secure=access.is_encrypted())
    return response


def _form(wrong: str = "") -> str:
    return flask.render_template("rowcall_page/sign_in.html", wrong=wrong, to=_wanted())


def _wanted() -> str:
    """Return the screen that was requested before signing in; never an address of another site."""
    to = flask.request.values.get("to", "")
    inside = to == PREFIX or to.startswith((f"{PREFIX}/", f"{PREFIX}?"))
    return to if inside and to.isprintable() and "\\" not in to else PREFIX


def _entered(token: str, to: str) -> flask.Response:
    response = flask.current_app.make_response(flask.redirect(to, 303))
    return access.keep(response, token)
