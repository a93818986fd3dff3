"""Limits and checks the JSON body and the query of a request before a schema loads them.

It refuses values that no route can use: text that PostgreSQL cannot store, numbers that JSON does not have, and
duplicate names.  The error names the field if there is one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import flask
import marshmallow
from flask_smorest import Blueprint
from marshmallow import ValidationError
from webargs.core import missing
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

from rowcall_api.http.invalid import Place, Wrong
from rowcall_api.sparse import sparse

# Real payloads are flatter; deeper nesting is a mistake or an attack on the parser's stack.
DEPTH = 32

# More than any double needs; longer numbers must be sent as text.
NUMBER_CHARACTERS = 100

# A string or a bracket: strings match as a whole, so that brackets inside them do not count.  An unterminated string
# extends to the end of the body without backtracking, because many quotes would otherwise take quadratic time.
TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)

DIGITS = re.compile(r"-?[0-9]{1,19}", re.ASCII)

NULL = "contains a null character, which cannot be stored"
HALF_A_PAIR = "contains half of a surrogate pair, which is not a character"


@dataclass(frozen=True)
class Refused:
    """Stands in for an unusable value while the body is parsed, because its path is not known yet."""

    why: str


class BoundedParser(FlaskParser):
    """webargs' parser, with bounds for JSON bodies and strict queries."""

    DEFAULT_UNKNOWN_BY_LOCATION = {  # noqa: RUF012 - webargs' hook
        **FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION,
        "query": marshmallow.RAISE,
    }

    def load_json(self, req: flask.Request, schema: marshmallow.Schema) -> Any:
        """Read the body, which may be left out if no field is required (webargs' hook)."""
        if not req.get_data(cache=True) and not any(field.required for field in schema.fields.values()):
            return missing
        return usable(parsed(_text(req), "the body"))

    def load_querystring(self, req: flask.Request, schema: marshmallow.Schema) -> Any:
        """Read the query (webargs' hook)."""
        names = {field.data_key or name: field for name, field in schema.fields.items()}
        wrong = {name: why for name, values in req.args.lists() if (why := _unusable(values, names.get(name)))}
        if wrong:
            raise ValidationError({name: [why] for name, why in wrong.items()})
        return super().load_querystring(req, schema)


class BodyBlueprint(Blueprint):  # type: ignore[misc]  # flask-smorest carries no types
    """A blueprint whose routes read their arguments with the bounded parser."""

    ARGUMENTS_PARSER = BoundedParser()

    def arguments(self, schema: type[marshmallow.Schema], **options: Any) -> Any:
        """Read arguments with one instance of this schema; flask-smorest would make another for each request."""
        return super().arguments(schema(), **options)

    @staticmethod
    def _prepare_response_content(data: Any) -> Any:
        """Return the chosen fields of a response that its schema has dumped (flask-smorest's hook)."""
        return sparse(data)


def depth(body: str) -> int:
    """Return how deeply brackets are nested."""
    deepest = level = 0
    for token in TOKEN.finditer(body):
        first = token.group()[:1]
        level += (first in "[{") - (first in "]}")
        deepest = max(deepest, level)
    return deepest


def usable(value: Any) -> Any:
    """Return the parsed value; raise a ValidationError that names each part that no route can use."""
    wrong = list(_wrong(value))
    if wrong:
        raise ValidationError(wrong)
    return value


def parsed(text: str, what: str) -> Any:
    """Parse JSON; raise BadRequest if the text is not JSON."""
    if depth(text) > DEPTH:
        raise BadRequest(f"{what} nests deeper than {DEPTH} levels")
    try:
        return json.loads(
            text,
            parse_constant=lambda constant: Refused(f"is {constant}, which is not a number in JSON"),
            parse_int=_integer,
            parse_float=_float,
            object_pairs_hook=_object,
        )
    except ValueError as error:
        raise BadRequest(f"{what} is not JSON: {error}") from None


def _text(request: flask.Request) -> str:
    """Return the text of the body, which must be declared as JSON, encoded in UTF-8 and not compressed."""
    if request.headers.get("Content-Encoding", "").lower() not in {"", "identity"}:
        raise UnsupportedMediaType("the body has a Content-Encoding, which is not decoded: send it uncompressed")
    charset = request.mimetype_params.get("charset", "utf-8")
    if not request.is_json or charset.lower() not in {"utf-8", "utf8"}:
        raise UnsupportedMediaType("send the body as JSON in UTF-8, with Content-Type: application/json")
    try:
        return request.get_data(cache=True).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None


def _integer(digits: str) -> int | Refused:
    return _too_long(digits) or int(digits)


def _float(digits: str) -> float | Refused:
    number = _too_long(digits) or float(digits)
    return Refused("is too large to be stored") if number in (math.inf, -math.inf) else number


def _too_long(digits: str) -> Refused | None:
    if len(digits) <= NUMBER_CHARACTERS:
        return None
    return Refused(f"is a number of {len(digits)} characters; the limit is {NUMBER_CHARACTERS}: send it as text")


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields[name] = Refused("occurs more than once") if name in fields else value
    return fields


def _wrong(value: object, place: Place = ()) -> Iterator[Wrong]:
    """Yield each unusable part of a parsed body."""
    why = value.why if isinstance(value, Refused) else _not_storable(value) if isinstance(value, str) else None
    if why:
        yield Wrong(place, why)
    if isinstance(value, dict):
        yield from (Wrong(place, f"has a field name that {why}") for name in value if (why := _not_storable(name)))
    for name, inner in _parts(value):
        yield from _wrong(inner, (*place, name))


def _parts(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _not_storable(text: str) -> str | None:
    if "\0" in text:
        return NULL
    return None if text.isascii() or text.isprintable() or _encodes(text) else HALF_A_PAIR


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unusable(values: Sequence[str], field: marshmallow.fields.Field[Any] | None) -> str | None:
    """Return why a query parameter cannot be used, or None if it can; its field has not parsed it yet."""
    if len(values) > 1 and not isinstance(field, marshmallow.fields.List):
        return "occurs more than once"
    if any("\0" in value for value in values):
        return NULL
    # Python's int also accepts digits of other scripts, underscores and spaces.
    if isinstance(field, marshmallow.fields.Integer) and not all(DIGITS.fullmatch(value) for value in values):
        return "must be a whole number, such as 50"
    return None
