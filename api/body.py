"""Request bodies: JSON within bounds, looked at before it is parsed."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import flask
from flask_smorest import Blueprint
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

# A payload is a few fields; what nests deeper is a mistake or an attack on the parser's stack.
DEPTH = 32

# A string (its brackets do not count), or a bracket.
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class BoundedParser(FlaskParser):
    """webargs' parser, on bodies that are JSON and not too deep."""

    def _raw_load_json(self, req: flask.Request) -> Any:
        """webargs' hook for reading a body."""
        if not req.is_json:
            raise UnsupportedMediaType("send the body as JSON, with Content-Type: application/json")
        body = req.get_data(cache=True)
        if depth(body) > DEPTH:
            raise BadRequest(f"the body nests deeper than {DEPTH} levels")
        try:
            return json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"the body is no JSON: {error}") from None


class BodyBlueprint(Blueprint):  # type: ignore[misc]  # flask-smorest carries no types
    """A blueprint whose routes read their arguments with the bounded parser."""

    ARGUMENTS_PARSER = BoundedParser()


def depth(body: bytes) -> int:
    """How deep the brackets nest."""
    deepest = level = 0
    for token in TOKEN.finditer(body):
        first = token.group()[:1]
        level += (first in b"[{") - (first in b"]}")
        deepest = max(deepest, level)
    return deepest


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")
