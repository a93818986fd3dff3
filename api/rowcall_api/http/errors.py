"""Returns errors as RFC 9457 problem documents: a stable type, a status and a sentence, but no traceback."""

from __future__ import annotations

import json
from typing import Any

import flask
import marshmallow
from gunicorn.http.errors import ParseException
from marshmallow import fields
from werkzeug.exceptions import BadRequest, HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from rowcall.base import errors
from rowcall.base.errors.sentences import Fault
from rowcall.base.logs import LogEvent, log
from rowcall_api.http import invalid, request_log

RETRY_AFTER_SECONDS = 2

# The reason goes only to the log, because it names the host, the port and the user.
UNREACHABLE = "the database cannot be reached: try again in a moment"

# A sentence may quote the request, which may be long.
DETAIL_CHARACTERS = 1000

# The problem type of every request with invalid values, whether a schema or a rule of the core refuses them.
INVALID = "invalid-input"

# The detail if a schema refuses a request; `errors` says the rest.
SOME_FIELDS = "some fields of the request are invalid"

# Error -> the last part of its problem type, and the HTTP status.
PROBLEMS: dict[type[errors.RowcallError], tuple[str, int]] = {
    errors.RunInvalid: (INVALID, 422),
    errors.JobTypeUnknown: (INVALID, 422),
    errors.DefinitionInvalid: (INVALID, 422),
    errors.DefinitionNotFound: ("not-found", 404),
    errors.ScheduleInvalid: (INVALID, 422),
    errors.FilterInvalid: (INVALID, 422),
    errors.SearchTooSlow: ("search-too-slow", 503),
    errors.TooManySearches: ("too-many-searches", 429),
    errors.TooManyWaiting: ("too-many-waiting", 429),
    errors.KeyConflict: ("idempotency-key-reused", 422),
    errors.NaturalKeyConflict: ("natural-key-conflict", 422),
    errors.KeyGone: ("idempotency-key-gone", 503),
    errors.RunNotFound: ("not-found", 404),
    errors.ApiKeyInvalid: (INVALID, 422),
    errors.ApiKeyNotFound: ("not-found", 404),
    errors.ApiKeyNameTaken: ("key-name-taken", 409),
    errors.ApiKeyEnded: ("key-ended", 409),
    errors.QueueInvalid: (INVALID, 422),
    errors.QueueNotFound: ("not-found", 404),
    errors.QueueUnset: ("not-found", 404),
    errors.QueueBusy: ("queue-busy", 409),
    errors.EffectKindUnknown: (INVALID, 422),
    errors.EffectNotFound: ("not-found", 404),
    errors.EffectNotOpen: ("effect-not-open", 409),
    errors.FileMissing: ("file-missing", 404),
    errors.FileChanged: ("file-changed", 409),
    errors.OperationNotFound: ("not-found", 404),
    errors.OperationRefused: ("operation-refused", 409),
    errors.OperationKeyConflict: ("idempotency-key-reused", 422),
    errors.TransitionRefused: ("transition-refused", 409),
    errors.RunPruned: ("run-pruned", 409),
    errors.RunArchived: ("run-archived", 409),
    errors.NaturalKeyHeld: ("natural-key-held", 409),
    errors.RunChanged: ("run-changed", 412),
    errors.DefinitionChanged: ("definition-changed", 412),
    errors.DatabaseUnreachable: ("database-unreachable", 503),
    errors.DatabaseUnavailable: ("database-unreachable", 503),
    errors.CommitUnconfirmed: ("commit-unconfirmed", 503),
    errors.SchemaMismatch: ("schema-mismatch", 503),
    errors.RightsMissing: ("database-rights-missing", 503),
}


# The response to these errors contains the current ETag.
CHANGED = (errors.RunChanged, errors.DefinitionChanged)


class InvalidValueSchema(marshmallow.Schema):
    """An invalid value of a request."""

    in_ = fields.String(
        data_key="in",
        required=True,
        validate=marshmallow.validate.OneOf(["body", "query", "header", "path"]),
        metadata={"description": "The part of the request that has the value."},
    )
    pointer = fields.String(
        required=True,
        metadata={
            "description": "A JSON pointer (RFC 6901) to the value; empty for the whole body. For a query, a header"
            " or a path, it is a slash and the name of the parameter.",
            "example": "/payload/user_id",
        },
    )
    code = fields.String(
        required=True,
        validate=marshmallow.validate.OneOf(invalid.ALL_CODES),
        metadata={"description": "Stable, so programs can rely on it."},
    )
    detail = fields.String(required=True, metadata={"description": "What is wrong with the value."})


class ProblemSchema(marshmallow.Schema):
    """The format of every error response."""

    type = fields.String(required=True, metadata={"description": "Stable, so programs can rely on it."})
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(metadata={"description": "What is wrong, and what to do."})
    errors = fields.List(
        fields.Nested(InvalidValueSchema),
        metadata={"description": f"The invalid values, at most {invalid.REPORTED_MOST}."},
    )
    more_errors = fields.Integer(
        metadata={"description": "How many more invalid values there are; left out if `errors` has them all."}
    )
    current_status = fields.String(metadata={"description": "The current status, which does not allow the request."})
    allowed_events = fields.List(fields.String(), metadata={"description": "The events that are allowed instead."})
    key_id = fields.Integer(metadata={"description": "The id of the valid API key that already has this name."})
    current_etag = fields.String(metadata={"description": "The current ETag of the changed resource."})


def problem(slug: str, title: str, status: int, detail: str, **more: Any) -> flask.Response:
    """Return a problem document as a response."""
    request_log.note(problem=slug)
    return flask.Response(_document(slug, title, status, detail, **more), status, mimetype="application/problem+json")


def problem_text(status: int, title: str, detail: str) -> bytes:
    """Return a problem document as text, for input that is refused before it becomes a request."""
    return _document(_slug(title), title, status, detail).encode()


def _document(slug: str, title: str, status: int, detail: str, **more: Any) -> str:
    shortened = detail if len(detail) <= DETAIL_CHARACTERS else f"{detail[: DETAIL_CHARACTERS - 1]}…"
    return json.dumps(
        {"type": f"urn:rowcall:problem:{slug}", "title": title, "status": status, "detail": shortened, **more}
    )


def register(app: flask.Flask) -> None:
    """Register handlers that turn every error of this application into a problem document."""
    app.register_error_handler(HTTPException, http_problem)
    app.register_error_handler(errors.RowcallError, rowcall_problem)
    app.register_error_handler(ParseException, unreadable)
    app.register_error_handler(Exception, broken)


def http_problem(error: HTTPException) -> flask.Response:
    """Return an error of Flask, Werkzeug or flask-smorest as a problem document."""
    status = error.code or 500
    more = getattr(error, "data", None) or {}
    wrong = invalid.from_webargs(more.get("messages") or {})
    if wrong:
        response = problem(INVALID, INVALID.replace("-", " "), status, SOME_FIELDS, **invalid.bounded(wrong))
    else:
        response = problem(_slug(error.name), error.name, status, _detail(error), **_forbidden(error))
    for name, value in error.get_headers(flask.request.environ):
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _forbidden(error: HTTPException) -> dict[str, Any]:
    """Return the `errors` that point to the run of a batch that the key may not enqueue."""
    place = getattr(error, "place", ())
    if not place:
        return {}
    why = Fault(str(error.description), invalid.FORBIDDEN)
    return {"errors": invalid.listed("body", [invalid.Wrong(place, why)])}


def _detail(error: HTTPException) -> str:
    """Return what is wrong, and what to do; Werkzeug's own sentences are for people who typed an address."""
    own = type(error).description
    if error.description != own:
        return str(error.description)
    if isinstance(error, MethodNotAllowed):
        taken = ", ".join(sorted(set(error.valid_methods or ()) - {"HEAD", "OPTIONS"}))
        return f"{flask.request.method} is not allowed here; allowed: {taken or 'nothing'}"
    if isinstance(error, NotFound):
        return "there is nothing at this URL; /docs lists all operations"
    if isinstance(error, RequestEntityTooLarge):
        return f"the body is larger than {flask.current_app.config['MAX_CONTENT_LENGTH']} bytes"
    return str(own)


def unreadable(_: ParseException) -> flask.Response:
    """Report a chunked body that gunicorn could not read."""
    return http_problem(BadRequest("the body ended early, or its chunks are malformed"))


def rowcall_problem(error: errors.RowcallError) -> flask.Response:
    """Return an error of Rowcall as a problem document; an error without an entry in PROBLEMS is a bug."""
    if type(error) not in PROBLEMS:
        return broken(error)
    slug, status = PROBLEMS[type(error)]
    detail = str(error)
    if type(error) is errors.DatabaseUnreachable:
        request_log.note(error=detail)
        detail = UNREACHABLE
    response = problem(slug, slug.replace("-", " "), status, detail, **_more(error))
    if status in {429, 503}:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if isinstance(error, CHANGED) and error.version is not None:
        response.set_etag(error.version)
    return response


def _more(error: errors.RowcallError) -> dict[str, Any]:
    """Return the members of the problem document that this error adds for programs."""
    if found := _invalid(error):
        return invalid.bounded(found)
    if isinstance(error, (errors.TransitionRefused, errors.OperationRefused)):
        return {"current_status": error.status, "allowed_events": list(error.allowed)}
    if isinstance(error, CHANGED) and error.version is not None:
        return {"current_etag": f'"{error.version}"'}
    if isinstance(error, errors.ApiKeyNameTaken):
        return {"key_id": error.holder}
    if isinstance(error, errors.EffectNotOpen):
        return {"current_status": error.state, "allowed_events": []}
    return {}


def _invalid(error: errors.RowcallError) -> list[dict[str, str]]:
    """Return the `errors` for what is wrong with the request's values."""
    if isinstance(error, (errors.RunInvalid, errors.DefinitionInvalid, errors.FilterInvalid)):
        return invalid.from_fields(error.fields)
    if isinstance(error, (errors.ScheduleInvalid, errors.ApiKeyInvalid, errors.QueueInvalid)) and error.field:
        return invalid.from_fields({error.field: str(error)})
    if isinstance(error, errors.JobTypeUnknown):
        return invalid.from_job_type(error)
    if isinstance(error, errors.EffectKindUnknown):
        return invalid.from_fields({"kind": error.fault})
    if isinstance(error, errors.KeyTaken):
        return invalid.listed("body", [invalid.Wrong(place, str(error)) for place in error.places])
    return []


def broken(error: Exception) -> flask.Response:
    """Handle an internal error: log the traceback and return the request id to find it by."""
    log().error(LogEvent.API_REQUEST_FAILED, exc_info=error)
    return problem(
        "internal-error",
        "internal error",
        500,
        f"internal error; look for the request id {flask.g.get('request_id')} in the log",
    )


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-").replace("'", "")
