"""Marshmallow's fields as JSON Schema, where apispec's own conversion is wrong, too wide, or fails.

A schema describes the usual form of a value: marshmallow may also accept others, such as "1" for 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import fields, validate
from marshmallow.validate import Validator

# Constructs of Python's regular expressions that JSON Schema lacks, or that not every implementation supports.
ONLY_PYTHON = re.compile(r"\\[AZN]|\(\?[^:=!]|[*+?}]\+")

NUMBER = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"

# A date, and perhaps a time, without an offset.
NAIVE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?)?$"

ISO = ("iso", "iso8601", None)
TIMESTAMPS = ("timestamp", "timestamp_ms")

FieldOfAny = fields.Field[Any]


class FieldConverter(OpenAPIConverter):
    """apispec's converter, which leaves out what cannot be described instead of giving up."""

    def init_attribute_functions(self) -> None:
        """Add the functions below before the one that allows null, which has to be the last (apispec's hook)."""
        super().init_attribute_functions()  # type: ignore[no-untyped-call]
        self.attribute_functions[-1:-1] = [self.tuple2properties, self.excluded2properties]

    def field2property(self, field: FieldOfAny) -> dict[str, Any]:
        """Return the schema of a field, without the parts that cannot be converted or written as JSON."""
        found: dict[str, Any] = {}
        functions: list[Any] = self.attribute_functions
        for describe in functions:
            with suppress(Exception):  # an app's fields may raise anything
                found.update(describe(field, ret=found))
        return {name: value for name, value in found.items() if _is_json(value)}

    def field2type_and_format(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the type: a number stored as a string is usually sent as a string, and a time may be a number."""
        if isinstance(field, fields.Number) and _is_sent_as_text(field):
            pattern = {} if getattr(field, "allow_nan", False) else {"pattern": NUMBER}
            return {"type": ["number", "string"], **pattern}
        if isinstance(field, fields.Boolean) and not (True in field.truthy and False in field.falsy):
            return {}
        if isinstance(field, fields.DateTime) and field.format in TIMESTAMPS:
            return {"type": "number", "format": "double", "minimum": 0}
        if isinstance(field, fields.NaiveDateTime):
            exact = field.format in ISO and field.timezone is None
            return {"type": "string", **({"pattern": NAIVE} if exact else {})}
        if isinstance(field, (fields.DateTime, fields.Date, fields.Time)) and field.format not in ISO:
            return {"type": "string"}
        if isinstance(field, fields.DateTime) and not isinstance(field, fields.AwareDateTime):
            return {"type": "string", "anyOf": [{"format": "date-time"}, {"pattern": NAIVE}]}
        if isinstance(field, fields.Mapping):
            return {"type": "object"}
        found: dict[str, Any] = super().field2type_and_format(field)
        return found

    def field2choices(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the values that all validators allow; ContainsOnly concerns the items instead."""
        choices = _allowed(field, field, validate.OneOf, validate.Equal)
        if choices is None:
            return {}
        return {"enum": [*choices, None] if field.allow_none and None not in choices else choices}

    def field2range(self, field: FieldOfAny, ret: dict[str, Any]) -> dict[str, Any]:
        """Return the bounds of a number; JSON Schema has none for times and strings."""
        ranges = [one for one in _validators(field) if isinstance(one, validate.Range)]
        if not isinstance(field, (fields.Number, fields.TimeDelta)):
            return {}
        low = [(_number(field, one.min), not one.min_inclusive) for one in ranges if one.min is not None]
        high = [(_number(field, one.max), one.max_inclusive) for one in ranges if one.max is not None]
        found = {}
        if low:
            bound, excluded = max(low)
            found["exclusiveMinimum" if excluded else "minimum"] = bound
        if high:
            bound, included = min(high)
            found["maximum" if included else "exclusiveMaximum"] = bound
        return found

    def field2length(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the bounds of a length; their keywords differ by type."""
        counted = _counted(field)
        lengths = [one for one in _validators(field) if isinstance(one, validate.Length)]
        low = [least for one in lengths if (least := one.min if one.equal is None else one.equal) is not None]
        high = [most for one in lengths if (most := one.max if one.equal is None else one.equal) is not None]
        found = {f"min{counted}": max(low, default=None), f"max{counted}": min(high, default=None)} if counted else {}
        return {name: bound for name, bound in found.items() if bound is not None}

    def field2pattern(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the patterns, which Python matches from the start of a string."""
        if "pattern" in field.metadata:
            return {}
        found = [getattr(one, "regex", None) for one in _validators(field)]
        patterns = [pattern for one in found if isinstance(one, re.Pattern) and (pattern := _pattern(one))]
        more = {"allOf": [{"pattern": one} for one in patterns[1:]]} if patterns[1:] else {}
        return {"pattern": patterns[0], **more} if patterns else {}

    def datetime2properties(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Add nothing to the type, because apispec would add keywords that are not part of JSON Schema."""
        return {}

    def enum2properties(self, field: FieldOfAny, **kwargs: Any) -> dict[str, Any]:
        """Return the members of an enum that the validators allow."""
        found: dict[str, Any] = super().enum2properties(field, **kwargs)
        allowed = kwargs["ret"].get("enum")
        both = [one for one in found.get("enum", ()) if allowed is None or one in allowed]
        return {**found, **({"enum": both} if "enum" in found else {})}

    def nested2properties(self, field: FieldOfAny, ret: dict[str, Any]) -> dict[str, Any]:
        """Return a reference to the nested schema, unless this field changes which fields the schema accepts."""
        if isinstance(field, fields.Nested) and field.unknown not in (None, field.schema.unknown):
            return {"type": "array", "items": {"type": "object"}} if field.many else {"type": "object"}
        found: dict[str, Any] = super().nested2properties(field, ret)
        return found

    def list2properties(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the schema of the items, with the values that ContainsOnly allows."""
        if not isinstance(field, fields.List):
            return {}
        items = self.field2property(field.inner)
        only = _allowed(field, field.inner, validate.ContainsOnly)
        if only is not None:
            items["enum"] = [one for one in only if one in items.get("enum", only)]
        return {"items": items}

    def dict2properties(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the schema of the values, and that of the names if they are strings."""
        if not isinstance(field, fields.Mapping):
            return {}
        names = {} if field.key_field is None else self.field2property(field.key_field)
        values = {} if field.value_field is None else self.field2property(field.value_field)
        return {**({"propertyNames": names} if names.get("type") == "string" else {}), "additionalProperties": values}

    def tuple2properties(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the schema of each item of a tuple."""
        if not isinstance(field, fields.Tuple):
            return {}
        items = [self.field2property(one) for one in field.tuple_fields]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def excluded2properties(self, field: FieldOfAny, **_: Any) -> dict[str, Any]:
        """Return the values that NoneOf excludes."""
        excluded = [
            value
            for one in _validators(field)
            if type(one) is validate.NoneOf and not isinstance(one.iterable, str)
            for value in _sent(field, one.iterable)
            if value is not None
        ]
        return {"not": {"enum": excluded}} if excluded else {}


class PayloadPlugin(MarshmallowPlugin):
    """apispec's plugin for marshmallow schemas, with this converter."""

    Converter = FieldConverter


def _validators(field: FieldOfAny) -> Iterator[object]:
    waiting: list[object] = [*field.validators]
    while waiting:
        one = waiting.pop(0)
        waiting += one.validators if isinstance(one, validate.And) else []
        yield one


def _allowed(field: FieldOfAny, of: FieldOfAny, *kinds: type[Validator]) -> list[Any] | None:
    """Return the values, as they are sent, that all validators of these kinds allow; None without such validators."""
    allowed: list[Any] | None = None
    for one in _validators(field):
        if type(one) not in kinds:
            continue
        choices = [one.comparable] if isinstance(one, validate.Equal) else getattr(one, "choices", ())
        # In a string, `in` finds substrings; and a decimal number can be sent in many forms.
        if isinstance(choices, str) or (isinstance(of, fields.Number) and _is_sent_as_text(of)):
            continue
        values = _sent(of, choices)
        allowed = values if allowed is None else [value for value in allowed if value in values]
    return allowed


def _sent(field: FieldOfAny, values: Iterable[Any]) -> list[Any]:
    """Return Python values in the form that they have in a payload."""
    return [None if value is None else _serialized(field, value) for value in values]


def _serialized(field: FieldOfAny, value: Any) -> Any:
    return field.serialize("", value, accessor=lambda it, *_: it)


def _is_sent_as_text(field: fields.Number[Any]) -> bool:
    strict = isinstance(field, fields.Integer) and field.strict
    return isinstance(field, fields.Decimal) or (field.as_string and not strict)


def _number(field: FieldOfAny, bound: Any) -> float:
    """Return a bound as a JSON number; `as_string` would turn it into a string."""
    value = _serialized(field, bound) if isinstance(field, fields.TimeDelta) else bound
    exact = Decimal(str(value))
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def _counted(field: FieldOfAny) -> str:
    """Return JSON Schema's name for what the length of this field counts."""
    if isinstance(field, fields.List) or (isinstance(field, fields.Nested) and field.many):
        return "Items"
    if isinstance(field, fields.Mapping):
        return "Properties"
    return "Length" if isinstance(field, fields.String) and not isinstance(field, fields.UUID) else ""


def _pattern(regex: re.Pattern[str]) -> str | None:
    """Return the pattern for JSON Schema, or None if only Python supports it."""
    text = re.sub(r"(?<!\\)\\Z$", "$", regex.pattern)
    if regex.flags & ~re.UNICODE or ONLY_PYTHON.search(text):
        return None
    return text if text.startswith("^") and "|" not in text else f"^(?:{text})"


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
