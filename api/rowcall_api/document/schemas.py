"""Schemas in the form that client generators need.

Every whole number is an int64, as PostgreSQL's ids and counts are: without a format, generated clients for Java, Go, C#
or Kotlin use 32 bits.  A field with a default may be left out of a request, but generated TypeScript types would
require it, as they do in a response, so the default is in the description instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import fields
from werkzeug.routing import IntegerConverter

RUN, LISTED_RUN, RUN_LIST = ({"$ref": f"#/components/schemas/{name}"} for name in ("Run", "ListedRun", "RunList"))

INT64 = {"format": "int64"}


class Converter(OpenAPIConverter):
    """apispec's converter of marshmallow schemas, with these two rules."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_attribute_function(_whole_number)  # type: ignore[no-untyped-call]  # apispec has no type for it

    def fields2jsonschema(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema of an object (apispec's hook)."""
        described: dict[str, Any] = super().fields2jsonschema(*args, **kwargs)  # type: ignore[no-untyped-call]
        for field in described["properties"].values():
            _say_default(field)
        return described


class Schemas(MarshmallowPlugin):
    """apispec's plugin for marshmallow schemas, which uses this converter for all of them."""

    Converter = Converter


def _whole_number(_: object, field: fields.Field[Any], **__: Any) -> dict[str, Any]:
    return INT64 if isinstance(field, fields.Integer) else {}


def _say_default(field: dict[str, Any]) -> None:
    default, text = field.pop("default", None), field.get("description", "")
    if default not in (None, {}, []) and "efault" not in text:
        field["description"] = f"{text} Default: {json.dumps(default)}.".strip()


def id_in_a_path(converter: IntegerConverter) -> dict[str, Any]:
    """Return the schema of an id in a path (flask-smorest's converter function)."""
    bounds = {"minimum": converter.min, "maximum": converter.max}
    return {"type": "integer", **INT64, **{name: bound for name, bound in bounds.items() if bound is not None}}


# The schema of the response if the request selects some fields of the entries.  RunList does not need this, because its
# entries require only the id.
SPARSE_PAGE = {
    "type": "object",
    "description": "A page whose entries have only the fields that `fields` names, and those that identify an entry.",
    "properties": {
        "items": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
        "next": {"type": ["string", "null"]},
    },
    "required": ["items", "next"],
}
SPARSE_PAGE_NAME = "SparsePage"


def may_be_sparse(answers: Mapping[Any, Any]) -> None:
    """Document that the response to a request with `fields` may have fewer fields."""
    for answer in answers.values():
        for content in answer.get("content", {}).values() if isinstance(answer, dict) else ():
            whole = content["schema"]
            if whole == RUN:
                content["schema"] = {"anyOf": [RUN, LISTED_RUN]}
            elif whole != RUN_LIST:
                content["schema"] = {"anyOf": [whole, {"$ref": f"#/components/schemas/{SPARSE_PAGE_NAME}"}]}
