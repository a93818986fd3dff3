"""Formats of numbers: every whole number is an int64, because PostgreSQL's ids and counts are.

Without a format, clients that are generated for Java, Go, C# or Kotlin hold a number of 32 bits.
"""

from __future__ import annotations

from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import fields
from werkzeug.routing import IntegerConverter

INT64 = {"format": "int64"}


class Converter(OpenAPIConverter):
    """apispec's converter of marshmallow schemas, which also names the format of whole numbers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_attribute_function(_whole_number)  # type: ignore[no-untyped-call]  # apispec has no type for it


class Schemas(MarshmallowPlugin):
    """apispec's plugin for marshmallow schemas, with this converter from the first schema on."""

    Converter = Converter


def _whole_number(_: object, field: fields.Field[Any], **__: Any) -> dict[str, Any]:
    return INT64 if isinstance(field, fields.Integer) else {}


def id_in_a_path(converter: IntegerConverter) -> dict[str, Any]:
    """Return the schema of an id in a path (flask-smorest's converter function)."""
    bounds = {"minimum": converter.min, "maximum": converter.max}
    return {"type": "integer", **INT64, **{name: bound for name, bound in bounds.items() if bound is not None}}
