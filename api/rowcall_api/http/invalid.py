"""Invalid input: says what is wrong with a request, value by value, in one form for all routes.

Each problem has `in` (body, query, header or path), a JSON pointer (RFC 6901) to the value, a code for programs, and a
detail for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import flask
import marshmallow

from rowcall.base.errors import EffectKindUnknown, JobTypeUnknown
from rowcall.base.errors.sentences import Fault

# The path of a value: field names and list positions.
Place: TypeAlias = tuple[str | int, ...]

# Bounds a response, because a body can have thousands of invalid values.
REPORTED_MOST = 20

# Marshmallow's key for errors that concern an object as a whole.
WHOLE = "_schema"

UNKNOWN = "Unknown field."

# Replaces marshmallow's message for a value of the wrong type.
NOT_AN_OBJECT = "must be a JSON object"

# Marshmallow reports only messages; a Fault of the core has its own code.
CODES = {
    marshmallow.fields.Field.default_error_messages["required"]: "missing",
    marshmallow.fields.Field.default_error_messages["null"]: "null",
    UNKNOWN: "unknown",
}
OTHER = "invalid"

# The key lacks a scope for the value, or is limited to other values.
FORBIDDEN = "forbidden"

ALL_CODES = (*CODES.values(), JobTypeUnknown.code, EffectKindUnknown.code, FORBIDDEN, OTHER)

# webargs' name of each part of a request -> `in`.
LOCATIONS = {"json": "body", "json_or_form": "body", "headers": "header", "path": "path", "query": "query"}


class Wrong(NamedTuple):
    """An invalid value: its path, and what is wrong with it."""

    place: Place
    why: str


def listed(where: str, wrong: Iterable[Wrong]) -> list[dict[str, str]]:
    """Return the `errors` of a problem document for values in this part of the request."""
    return [{"in": where, "pointer": pointer(one.place), "code": _code(one.why), "detail": one.why} for one in wrong]


def bounded(found: list[dict[str, str]]) -> dict[str, Any]:
    """Return the members of a problem document for these `errors`: the first ones, and how many more there are."""
    more = len(found) - REPORTED_MOST
    return {"errors": found[:REPORTED_MOST], **({"more_errors": more} if more > 0 else {})}


def _code(why: str) -> str:
    return why.code if isinstance(why, Fault) else CODES.get(why, OTHER)


def pointer(place: Place) -> str:
    """Return a path as a JSON pointer, which is empty for the whole value."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


def from_webargs(messages: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the `errors` for what webargs reports: location -> messages of marshmallow."""
    return [error for where, found in messages.items() for error in listed(LOCATIONS.get(where, where), flat(found))]


def from_fields(fields: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the `errors` for what a function of the core reports: field -> what is wrong with it."""
    return [
        error
        for name, found in fields.items()
        for where, place in [_place_of(name)]
        for error in listed(where, flat(found, place))
    ]


def from_job_type(error: JobTypeUnknown) -> list[dict[str, str]]:
    """Return the `errors` for an unknown job type: they point to where the request names it, directly or not."""
    where, place = _place_of_type(error.name)
    return listed(where, [Wrong(place, error.fault)])


def flat(messages: object, place: Place = ()) -> Iterator[Wrong]:
    """Yield each problem in marshmallow's nested messages."""
    if isinstance(messages, Mapping):
        for name, inner in messages.items():
            yield from flat(inner, place if name == WHOLE else (*place, name))
    elif isinstance(messages, Wrong):
        yield Wrong((*place, *messages.place), messages.why)
    elif isinstance(messages, (list, tuple)):
        for one in messages:
            yield from flat(one, place)
    else:
        yield Wrong(place, messages if isinstance(messages, str) else str(messages))


def loaded(error: marshmallow.ValidationError) -> dict[str, Any]:
    """Return the fields that a schema could load although it refused the whole object."""
    return error.valid_data if isinstance(error.valid_data, dict) else {}


def _place_of(name: str) -> tuple[str, Place]:
    """Return where the request has this field; the core does not know whether that is the body or another part."""
    if name == "idempotency_key":
        return "header", ("Idempotency-Key",)
    if name in (flask.request.view_args or {}):
        return "path", (name,)
    if flask.request.method in ("GET", "HEAD"):
        return "query", (name,)
    body = flask.request.get_json(silent=True)
    criteria = body.get("filter") if isinstance(body, dict) else None
    inside = isinstance(criteria, dict) and name in criteria
    return "body", (("filter", name) if inside else (name,))


def _place_of_type(name: str) -> tuple[str, Place]:
    """Return where the request names this job type; a clone, for example, only has the id of a run of that type."""
    body = flask.request.get_json(silent=True)
    sent = body if isinstance(body, dict) else {}
    several = sent.get("job_types")
    if isinstance(several, list) and name in several:
        return "body", ("job_types", several.index(name))
    if "job_type" not in sent:
        for parameter in flask.request.view_args or {}:
            return "path", (parameter,)
    return "body", ("job_type",)
