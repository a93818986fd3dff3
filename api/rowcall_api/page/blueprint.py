"""The blueprint of the page: what happens before and after each request, and how its errors look."""

from __future__ import annotations

import secrets
from urllib.parse import quote, urlencode

import flask
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from rowcall.base import errors
from rowcall_api.http.errors import broken, http_problem, rowcall_problem, unreadable
from rowcall_api.page import access
from rowcall_api.page.slots import SLOTS
from rowcall_api.page.words import FILTERS
from rowcall_api.rights import may, may_change_many, may_change_queue
from rowcall_api.standby.requests import position_written

PREFIX = "/admin"

blueprint = flask.Blueprint("page", __name__, url_prefix=PREFIX, template_folder="templates")

# The methods of forms and programs, and all methods that the page refuses in HTML where no screen or form accepts them.
SENDS = ("POST", "PUT", "PATCH", "DELETE")
METHODS = ("GET", *SENDS)

NO_SCREEN = "there is no screen at this address"

# Key in the application's extensions: the name of the environment, and its colour.
ENVIRONMENT = "page_environment"

# Endpoint, name and key of each screen, in the order of the menu; the last two are only for admins.
SCREENS = (
    ("page.overview", "Overview", "o"),
    ("page.runs", "Runs", "r"),
    ("page.definitions", "Definitions", "d"),
    ("page.effects", "Effects", "e"),
    ("page.failures", "Failures", "f"),
    ("page.workers", "Workers", "w"),
    ("page.queues", "Queues", "q"),
    ("page.operations", "Operations", "p"),
    ("page.audit", "Audit", "a"),
    ("page.keys", "Keys", "k"),
)
ADMINS_ONLY = {"page.audit", "page.keys"}
FOR_ALL = {"page.overview"}

# Key in the application's extensions: the pool for sign-ins and forms, so that operators can act while the
# connections of the API are busy.
FORMS_POOL = "page_forms_pool"

# What the screen after a form says, by the name in its address.
SAID = {
    "retry": "The run is queued again.",
    "cancel": "The run is cancelled, or its worker has been asked to stop it.",
    "run-now": "The run is due now.",
    "reschedule": "The run is due at the new time.",
    "clone": "This run is the copy.",
    "resolve": "The outcome is recorded.",
    "started-now": "This run was just enqueued.",
    "pause": "Paused.",
    "resume": "Resumed.",
    "limit": "The limit is set.",
    "remove-settings": "The settings are removed.",
    "started": "The operation has started.",
    "stop": "The operation stops before its next batch.",
    "continue": "The operation continues.",
    "revoke": "The key is revoked.",
    "view": "The view is saved, for all operators.",
    "view-removed": "The view is removed.",
}


@blueprint.before_request
def _begin() -> flask.typing.ResponseReturnValue | None:
    flask.g.pool = flask.current_app.extensions[FORMS_POOL]
    if flask.request.method in ("GET", "HEAD") and not access.is_open():
        flask.g.slot = object()
        flask.current_app.extensions[SLOTS].take(flask.g.slot)
    return access.check()


@blueprint.teardown_request
def _end(_: BaseException | None) -> None:
    if "slot" in flask.g:
        flask.current_app.extensions[SLOTS].give_back(flask.g.slot)


def nonce() -> str:
    """Return this response's nonce: browsers use only the script and the style sheet that have it."""
    found: str = flask.g.setdefault("nonce", secrets.token_urlsafe(16))
    return found


@blueprint.after_request
def _protect(response: flask.Response) -> flask.Response:
    """Let the page use only its own files, and let no site frame it."""
    policy = (
        "default-src 'none'",
        f"script-src 'nonce-{nonce()}'",
        f"style-src 'nonce-{nonce()}'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    response.headers["Content-Security-Policy"] = "; ".join(policy)
    response.headers["X-Frame-Options"] = "DENY"
    # Not no-referrer: browsers would then send forms without their origin.
    response.headers["Referrer-Policy"] = "same-origin"
    if (position := position_written(response)) is not None:
        access.keep_position(response, position)
    return response


@blueprint.context_processor
def _layout() -> dict[str, object]:
    """Return what every template may use."""
    name, colour = flask.current_app.extensions[ENVIRONMENT]
    return {
        "environment": name,
        "colour": colour,
        "nonce": nonce,
        "csrf_token": access.csrf_token,
        "may_change": access.may_change,
        "is_private": access.is_private,
        "caller": flask.g.get("caller"),
        "screens": _menu() if "caller" in flask.g else [],
        "said": SAID.get(flask.request.args.get("done", "")),
        "here": here,
        "age": flask.g.get("age"),
        "may": may,
        "may_change_many": may_change_many,
        "may_change_queue": may_change_queue,
    }


def _menu() -> list[tuple[str, str, str]]:
    """Return the screens that the operator may see."""
    needed = {name: "admin" if name in ADMINS_ONLY else "read" for name, *_ in SCREENS}
    return [one for one in SCREENS if one[0] in FOR_ALL or may(needed[one[0]])]


def here(**changes: object) -> str:
    """Return this screen's address with these changes to its query; None removes a value."""
    # Not with url_for(), for which some names have a special meaning, such as _scheme.
    asked = {**flask.request.args.to_dict(flat=False), **changes, "done": None}
    kept = {name: value for name, value in asked.items() if value is not None}
    return f"{quote(flask.request.path)}?{urlencode(kept, doseq=True)}"


for name, function in FILTERS.items():
    blueprint.add_app_template_filter(function, f"page_{name}")


@blueprint.errorhandler(HTTPException)
def _http_error(error: HTTPException) -> flask.typing.ResponseReturnValue:
    if error.code is not None and error.code < 400:
        return error.get_response()
    return _shown(http_problem(error))


@blueprint.errorhandler(errors.RowcallError)
def _rowcall_error(error: errors.RowcallError) -> flask.Response:
    return _shown(rowcall_problem(error))


@blueprint.errorhandler(ParseException)
def _unreadable(error: ParseException) -> flask.Response:
    return _shown(unreadable(error))


@blueprint.errorhandler(Exception)
def _error(error: Exception) -> flask.Response:
    return _shown(broken(error))


def _shown(problem: flask.Response) -> flask.Response:
    """Show a problem document as a screen."""
    told = flask.json.loads(problem.get_data())
    problem.set_data(flask.render_template("rowcall_page/error.html", problem=told))
    problem.mimetype = "text/html"
    problem.headers.pop("WWW-Authenticate", None)  # a browser would ask for a password
    return problem


@blueprint.route("", methods=SENDS)
@blueprint.route("/<rest:unknown>", methods=METHODS)
def nowhere(unknown: str = "") -> flask.typing.ResponseReturnValue:
    """Redirect to the path without a trailing slash; otherwise refuse an unknown path, in HTML."""
    if flask.request.method not in access.READS:
        allowed = _methods(flask.request.path)
        raise MethodNotAllowed(allowed) if allowed else NotFound(NO_SCREEN)
    if flask.request.path.endswith("/"):
        return flask.redirect(f"{PREFIX}/{unknown.rstrip('/')}".rstrip("/"))
    raise NotFound(NO_SCREEN)


def _methods(path: str) -> list[str]:
    """Return the methods that a screen or form at this address accepts."""
    urls = flask.current_app.url_map.bind("")
    return [method for method in METHODS if urls.match(path, method)[0] != "page.nowhere"]
