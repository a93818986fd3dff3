"""The description of the interface, /openapi.json: the parts that all operations share.

The rest comes from the names, docstrings, schemas and scopes of the routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import flask
from apispec import BasePlugin
from flask_smorest import Api
from werkzeug.routing import IntegerConverter, Rule

from rowcall_api.deprecation import DEPRECATED
from rowcall_api.document.examples import add_examples
from rowcall_api.document.names import operation_id
from rowcall_api.document.schemas import SPARSE_PAGE, SPARSE_PAGE_NAME, Schemas, id_in_a_path, may_be_sparse
from rowcall_api.http import auth, errors, guard
from rowcall_api.standby.described import STANDBY_HEADERS, describe

PROBLEM = "application/problem+json"

# Response headers; each route names its own, such as `headers={"Location": "Location"}`.
HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "The id of the request in the log. An id that the client sends in this header is used if it is"
        " 1 to 64 of the characters A-Z a-z 0-9 . _ -.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Location": {
        "description": "The URL of the new resource.",
        "required": True,
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Idempotent-Replayed": {
        "description": "This is a replay of an earlier request with the same key; nothing was created.",
        "required": True,
        "schema": {"type": "string", "const": "true"},
    },
    "ETag": {
        "description": "Changes with every change that matters to an operator, but not with heartbeats, progress or"
        " ticks.",
        "required": True,
        "schema": {"type": "string"},
    },
    "CurrentETag": {
        "description": "The current ETag; omitted if the resource does not exist.",
        "schema": {"type": "string"},
    },
    "Attachment": {"description": "`attachment` and the file's name.", "required": True, "schema": {"type": "string"}},
    "Retry-After": {
        "description": "Seconds to wait before trying again.",
        "required": True,
        "schema": {"type": "integer", "format": "int64", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": "The challenge (RFC 6750): `error` says what is wrong with the key; `scope` is what it lacks.",
        "required": True,
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "The quota of this key: q requests in w seconds.",
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": "The requests left (r), and the seconds until more are allowed (t).",
        "schema": {"type": "string"},
    },
}

# Headers of every response.
ALWAYS = ("X-Request-Id", "RateLimit-Policy", "RateLimit")


@dataclass(frozen=True)
class Operation:
    """An operation of a route: its path, method, required scope and part of the document."""

    path: str
    method: str
    scope: str
    doc: dict[str, Any]

    @property
    def has_body(self) -> bool:
        """Whether the operation takes a body."""
        return "requestBody" in self.doc

    @property
    def has_condition(self) -> bool:
        """Whether the operation takes the version that the caller has seen."""
        return any(parameter["name"] == "If-Match" for parameter in self.doc.get("parameters", ()))

    @property
    def steers(self) -> bool:
        """Whether the status of the resource can forbid the operation."""
        named = "{" in self.path and not self.path.startswith(("/v1/definitions", "/v1/queues"))
        return self.method == "post" and self.scope == "operate" and named

    @property
    def takes_natural_key(self) -> bool:
        """Whether a natural key that another run holds can forbid the operation too."""
        return self.steers and self.path.startswith("/v1/runs/") and self.path.endswith(("/retry", "/clone"))

    @property
    def changes_keys(self) -> bool:
        """Whether the operation creates or ends a key."""
        return self.method == "post" and self.path.startswith("/v1/keys")

    @property
    def frees(self) -> bool:
        """Whether the operation removes the settings of a queue, which its running runs may still need."""
        return self.method == "delete" and self.path.startswith("/v1/queues")


@dataclass(frozen=True)
class Common:
    """A problem that many operations share: its meaning, the operations that have it, and its headers in HEADERS."""

    status: int
    name: str
    means: str
    answered_by: Callable[[Operation], bool] = lambda _: True
    headers: Mapping[str, str] = field(default_factory=dict)


WITH_CHALLENGE = {"WWW-Authenticate": "WWW-Authenticate"}
WITH_DELAY = {"Retry-After": "Retry-After"}

COMMON = (
    Common(400, "BadRequest", "The request cannot be read: the query is not UTF-8, or the body is not JSON."),
    Common(
        401,
        "Unauthorized",
        "The key is missing, unknown, expired or revoked.",
        headers=WITH_CHALLENGE,
    ),
    Common(
        403,
        "Forbidden",
        "The key lacks the required scope, which `WWW-Authenticate` names, or it is limited to other job types or"
        " queues.",
        lambda operation: operation.scope != auth.ANY_KEY,
        headers=WITH_CHALLENGE,
    ),
    # Also for PUT, because not every string is a valid name.
    Common(404, "NotFound", "No resource has this name or id.", lambda operation: "{" in operation.path),
    Common(406, "NotAcceptable", "`Accept` excludes JSON, or, for the content of a file, application/octet-stream."),
    Common(
        409,
        "Conflict",
        "The current status does not allow this: see `current_status` and `allowed_events`.",
        lambda operation: operation.steers and not operation.takes_natural_key,
    ),
    Common(
        409,
        "RunConflict",
        "The current status does not allow this (see `current_status` and `allowed_events`), or another run holds the"
        " natural key: `detail` says which.",
        lambda operation: operation.takes_natural_key,
    ),
    Common(
        409,
        "KeyConflict",
        "A valid key has this name, or the key is no longer valid: `detail` says which, and what to do.",
        lambda operation: operation.changes_keys,
    ),
    Common(
        409,
        "Busy",
        "Runs that count against the limit are running: try again when they end.",
        lambda operation: operation.frees,
    ),
    Common(
        409,
        "FileChanged",
        "The file has changed since its handler wrote it.",
        lambda operation: operation.path.endswith("/content"),
    ),
    Common(
        412,
        "PreconditionFailed",
        "The current ETag does not satisfy `If-Match` or `If-None-Match`.",
        lambda operation: operation.has_condition,
        headers={"ETag": "CurrentETag"},
    ),
    Common(413, "TooLarge", "The body is too large; this applies even if the operation takes none."),
    Common(415, "NotJson", "The body is not sent as JSON, or is compressed.", lambda operation: operation.has_body),
    Common(
        422,
        "Invalid",
        "A value is invalid: `errors` points to it and says why. Or an idempotency key or a natural key"
        " is already in use by a run or an operation with different content: `detail` names that run or operation.",
    ),
    Common(
        429,
        "TooMany",
        "Too many requests with this key, too many payload searches at once, too many waiting requests, or too many"
        " wrong keys from this address.",
        headers=WITH_DELAY,
    ),
    Common(
        503,
        "Unavailable",
        "The request cannot be answered now, for example because the database cannot be reached: `detail` says why,"
        " and what to do.",
        headers=WITH_DELAY,
    ),
)


class Operations(BasePlugin):
    """An apispec plugin that completes the description of each route."""

    def __init__(self, app: flask.Flask) -> None:
        self._app = app

    def operation_helper(
        self, path: str | None = None, operations: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Complete the operations of one route (apispec's hook)."""
        rule: Rule = kwargs["rule"]
        apps = guard.protects(self._app, rule.endpoint)
        for method, doc in (operations or {}).items():
            name = operation_id(rule.endpoint, method, not apps, len(operations or {}))
            scope = auth.named_scope(self._app.view_functions[rule.endpoint], method)
            assert scope or apps, f"{rule} names no scope: put @needs below the other decorators"
            if rule.endpoint in DEPRECATED:
                old = DEPRECATED[rule.endpoint]
                notice = f"Deprecated, and will be removed after {old.until:%Y-%m-%d}: use {old.instead}."
                doc |= {"deprecated": True, "description": "\n\n".join(filter(None, (notice, doc.get("description"))))}
            describe(self._app.view_functions[rule.endpoint], method, doc)
            _complete(Operation(path or "", method, scope or "admin", doc), name)
            if any(parameter["in"] == "query" for parameter in doc.get("parameters", ())):
                self._app.extensions[guard.WITH_QUERY].add((rule.endpoint, method))


def _complete(operation: Operation, name: str) -> None:
    doc = operation.doc
    doc["operationId"] = name
    scopes = [] if operation.scope == auth.ANY_KEY else [operation.scope]
    needs = f"Needs a key with the scope `{operation.scope}`." if scopes else "Needs any valid key."
    doc["description"] = "\n\n".join(text for text in (doc.get("description"), needs) if text)
    doc["security"] = [{"key": scopes}]
    answers: dict[Any, Any] = doc.setdefault("responses", {})
    for answer in answers.values():
        if isinstance(answer, dict):
            answer["headers"] = {**answer.get("headers", {}), **{name: name for name in ALWAYS}}
    for common in COMMON:
        # flask-smorest has already named the 422 of invalid arguments; keep only descriptions that are complete.
        if common.answered_by(operation) and not isinstance(answers.get(common.status), dict):
            answers[common.status] = common.name
    add_examples(name, answers)
    if any(parameter["name"] == "fields" for parameter in doc.get("parameters", ())):
        may_be_sparse(answers)
    doc["responses"] = dict(sorted(answers.items()))
    for parameter in doc.get("parameters", ()):
        _never_null(parameter["schema"])


def _never_null(schema: dict[str, Any]) -> None:
    """Remove null from a parameter's schema, because nothing in a URL or a header can be null."""
    if isinstance(schema.get("type"), list):
        [schema["type"]] = [kind for kind in schema["type"] if kind != "null"]
    if "enum" in schema:
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    if "default" in schema and schema["default"] is None:
        del schema["default"]


class Interface(Api):  # type: ignore[misc]  # flask-smorest carries no types
    """flask-smorest's Api, which returns errors as problem documents and describes them."""

    ERROR_SCHEMA = errors.ProblemSchema
    # Every operation lists all its statuses, so no default response is needed.
    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: flask.Flask) -> None:
        super().__init__(app, spec_kwargs={"marshmallow_plugin": Schemas(), "extra_plugins": [Operations(app)]})
        self.register_converter(IntegerConverter, id_in_a_path)
        errors.register(app)  # in place of flask-smorest's own handler
        for name, header in {**HEADERS, **STANDBY_HEADERS}.items():
            self.spec.components.header(name, header, lazy=True)
        self.spec.components.schema(SPARSE_PAGE_NAME, SPARSE_PAGE)
        for common in COMMON:
            self.spec.components.response(common.name, _described(common), lazy=True)


def _described(common: Common) -> Mapping[str, Any]:
    return {
        "description": common.means,
        "content": {PROBLEM: {"schema": errors.ProblemSchema}},
        "headers": {**common.headers, **{name: name for name in ALWAYS}},
    }
